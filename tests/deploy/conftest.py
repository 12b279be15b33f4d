"""A real API server, with the kinds that the charts use."""

import subprocess
import time
from collections.abc import Iterator

import pytest

from tests.deploy.rendering import HERE, tool
from tests.rig.cluster import Namespace, give_up, kubectl, new_namespace, try_kubectl


@pytest.fixture(scope="session")
def api_server() -> None:
    """Skips, with the reason, where no API server answers; else defines the kinds of others."""
    asked = subprocess.run(
        ["kubectl", "get", "--raw", "/readyz", "--request-timeout=5s"],
        capture_output=True,
        text=True,
    )
    if asked.returncode:
        give_up("no API server answers: make test-cluster starts one")
    for folder in (tool("crds"), HERE / "crds"):
        kubectl("apply", "--server-side", "--force-conflicts", f"--filename={folder}")
    wait = ("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
    deadline = time.monotonic() + 30
    # It is an error while a definition has no conditions yet.
    while (waited := try_kubectl(*wait)).returncode:
        assert time.monotonic() < deadline, waited.stderr
        time.sleep(0.2)


@pytest.fixture
def namespace(api_server: None) -> Iterator[Namespace]:
    """A new one that enforces restricted pod security."""
    with new_namespace() as made:
        yield made
