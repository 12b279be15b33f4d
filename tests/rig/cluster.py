"""The Kubernetes node of `scripts/cluster`, seen from a test that runs inside its network.

    scripts/cluster up && scripts/cluster run .venv/bin/python -m pytest -m cluster

Programs on the node, as `tests.rig.gcs`, are reached by pods at NODE_IP when they listen there.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import pytest

IMAGE = "localhost/tandem:dev"
TENSORBOARD_IMAGE = "localhost/tandem-tensorboard:dev"
NODE = "tandem-node"
NODE_IP = "10.244.0.1"

Manifest: TypeAlias = dict[str, Any]

_SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "cluster"
_NETWORK = Path("/run/netns/tandem-cluster")
_CANNOT = 3


def require_node() -> None:
    """Skips the test, with the reason, unless the node runs and we are in its network."""
    reason = _why_not()
    if reason:
        give_up(reason)


def give_up(reason: str) -> NoReturn:
    """Skips the test; where a node was just started for it, that is a failure."""
    if os.environ.get("TANDEM_NODE") == "started":  # noqa: TID251
        pytest.fail(reason)
    pytest.skip(reason)


def _why_not() -> str | None:
    status = subprocess.run([_SCRIPT, "status"], capture_output=True, text=True, check=False)
    if status.returncode == _CANNOT:
        return status.stderr.strip()
    if status.returncode:
        return "no node runs: `make test-cluster` starts one"
    if not _NETWORK.samefile("/proc/self/ns/net"):
        return "outside the node's network: scripts/cluster run .venv/bin/python -m pytest ..."
    return None


def kubectl(*arguments: str, stdin: str | None = None) -> str:
    """What kubectl prints; fails with its message."""
    result = try_kubectl(*arguments, stdin=stdin)
    assert result.returncode == 0, f"kubectl {' '.join(arguments)}:\n{result.stderr}"
    return result.stdout


def try_kubectl(*arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    """For calls that may be refused."""
    return subprocess.run(
        ["kubectl", *arguments], input=stdin, capture_output=True, text=True, check=False
    )


class Namespace:
    """One test's own; pods in it must obey the restricted standard."""

    def __init__(self, name: str) -> None:
        self.name = name

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        return kubectl("--namespace", self.name, *arguments, stdin=stdin)

    def apply(self, *manifests: Manifest) -> None:
        items = {"apiVersion": "v1", "kind": "List", "items": list(manifests)}
        self.kubectl("apply", "--filename=-", stdin=json.dumps(items))

    def get(self, *arguments: str) -> Manifest:
        """The object of a kind and a name, or the list of what is selected."""
        return json.loads(self.kubectl("get", *arguments, "--output=json"))

    def logs(self, *arguments: str) -> str:
        return self.kubectl("logs", *arguments)

    def wait_until(
        self,
        condition: Callable[[Manifest], object],
        *kind_and_name: str,
        seconds: float = 120,
    ) -> Manifest:
        """The object, once the condition holds for it; fails with it when time is over."""
        deadline = time.monotonic() + seconds
        while not condition(found := self.get(*kind_and_name)):
            assert time.monotonic() < deadline, json.dumps(found, indent=1)
            time.sleep(0.3)
        return found

    def wait_for_end(self, pod: str, *, seconds: float = 120) -> str:
        """The log of a pod that must succeed."""
        found = self.wait_until(has_ended, "pod", pod, seconds=seconds)
        log = self.logs(pod)
        assert found["status"]["phase"] == "Succeeded", log
        return log


@contextlib.contextmanager
def new_namespace() -> Iterator[Namespace]:
    """A namespace that enforces restricted pod security, and is gone at the end."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    labels = {
        f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn", "audit")
    }
    manifest = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": labels},
    }
    kubectl("create", "--filename=-", stdin=json.dumps(manifest))
    try:
        yield Namespace(name)
    finally:
        kubectl("delete", "namespace", name, "--wait=false")


def has_ended(pod: Manifest) -> bool:
    return pod["status"]["phase"] in {"Succeeded", "Failed"}


def restricted_pod(
    name: str,
    command: Sequence[str] | None = None,
    *,
    image: str = IMAGE,
    arguments: Sequence[str] | None = None,
    environment: dict[str, str] | None = None,
) -> Manifest:
    """A pod that runs once, with a read-only root and an empty /tmp."""
    container: Manifest = {
        "name": name,
        "image": image,
        "imagePullPolicy": "Never",
        "env": [{"name": key, "value": value} for key, value in (environment or {}).items()],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
    }
    if command is not None:
        container["command"] = list(command)
    if arguments is not None:
        container["args"] = list(arguments)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "restartPolicy": "Never",
            "enableServiceLinks": False,
            "automountServiceAccountToken": False,
            "securityContext": {
                "runAsNonRoot": True,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [container],
            "volumes": [{"name": "tmp", "emptyDir": {}}],
        },
    }
