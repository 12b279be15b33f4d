"""A small experiment as a release on a real node, its run in an in-cluster fake GCS."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from typing import Any

from tandem.checkpoints.attempts import Attempt
from tandem.checkpoints.gcs import GcsStore
from tandem.checkpoints.ledger import read_ledger
from tandem.checkpoints.lines import Line, read_line
from tandem.checkpoints.policies import MAIN_METRIC
from tests.deploy.rendering import CHART, tool
from tests.rig.cluster import IMAGE, Manifest, Namespace
from tests.rig.gcs import BUCKET, GcsServer, unique
from tests.small_experiment import SMALL

RELEASE = "fox"

_CONFIG = CHART.parents[2] / "services/ctl/demo/pipeline.config"

_DRAW = """
import pathlib
from services.ctl.shapes import ShapesSpec, make_shapes
make_shapes(pathlib.Path("/data"), ShapesSpec(num_train=16, num_held_out=6, image_size=64))
"""
_MOUNT = {"name": "data", "mountPath": "/data"}
_DRAWER = {
    "name": "data",
    "image": IMAGE,
    "imagePullPolicy": "Never",
    "command": ["python3", "-c", _DRAW],
    "env": [{"name": "HOME", "value": "/tmp"}],
    "securityContext": {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    },
    "volumeMounts": [_MOUNT, {"name": "tmp", "mountPath": "/tmp"}],
}


def _override(num_steps: int) -> str:
    return SMALL.format(
        num_steps=num_steps,
        labels="/data/label_map.pbtxt",
        train="/data/train.record",
        held_out="/data/val.record",
    )


class Experiment:
    """A release in a namespace, and its run."""

    def __init__(self, namespace: Namespace, gcs: GcsServer, client: Any) -> None:
        self.namespace = namespace
        self.gcs = gcs
        self.prefix = unique("run")
        self.run = f"gs://{BUCKET}/{self.prefix}"
        self.store = GcsStore(BUCKET, self.prefix, client=client)

    # Helm.

    def helm(self, *arguments: str, stdin: str | None = None) -> str:
        done = subprocess.run(
            [tool("helm"), *arguments, "--namespace", self.namespace.name],
            input=stdin,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise AssertionError(f"helm {arguments[0]}: {done.stderr}{done.stdout}\n{self.story()}")
        return done.stdout

    def deploy(self, *flags: str, num_steps: int, every_n: int, command: str = "install") -> str:
        """Installs or upgrades; returns what the user reads."""
        values = json.dumps(self._values(num_steps=num_steps, every_n=every_n))
        config = f"experiment.pipelineConfig={_CONFIG}"
        arguments = [command, RELEASE, str(CHART), "--values=-", "--set-file", config, *flags]
        return self.helm(*arguments, stdin=values)

    def _values(self, *, num_steps: int, every_n: int) -> Manifest:
        component = {
            "extraInitContainers": [_DRAWER],
            "extraVolumes": [{"name": "data", "emptyDir": {}}],
            "extraVolumeMounts": [_MOUNT],
            "resources": {
                "requests": {"cpu": "300m", "memory": "700Mi"},
                "limits": {"memory": "3Gi"},
            },
            "scratch": {"size": "500Mi"},
        }
        trainer = {"checkpointEveryN": every_n, "summaryEveryN": 5, "logInterval": 1}
        return {
            "image": {"repository": IMAGE.partition(":")[0], "tag": "dev", "pullPolicy": "Never"},
            "experiment": {"overrides": [_override(num_steps)]},
            "runStore": {"url": self.run},
            "extraEnv": [{"name": "STORAGE_EMULATOR_HOST", "value": self.gcs.url}],
            "trainer": component | {"settings": trainer},
            "evaluator": component | {"settings": {"pollInterval": 1, "waitInterval": 30}},
            "tensorboard": {
                "reloadSeconds": 2,
                "resources": {"requests": {"cpu": "50m", "memory": "256Mi"}},
            },
        }

    # Kubernetes.

    def objects(self, kind: str, component: str | None = None) -> list[Manifest]:
        selector = f"app.kubernetes.io/instance={RELEASE}"
        if component:
            selector += f",app.kubernetes.io/component={component}"
        return self.namespace.get(kind, f"--selector={selector}")["items"]

    def job(self) -> Manifest:
        """The trainer's Job, the one that is to stay."""
        [job] = [j for j in self.objects("jobs") if "deletionTimestamp" not in j["metadata"]]
        return job

    def pod(self, component: str) -> Manifest | None:
        """The component's pod that runs now."""
        pods = [
            pod
            for pod in self.objects("pods", component)
            if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
        ]
        return max(pods, key=lambda p: p["metadata"]["creationTimestamp"], default=None)

    def evaluator(self) -> Manifest:
        return self.namespace.get("deployment", f"{RELEASE}-evaluator")

    def tensorboard_runs(self) -> set[str]:
        """The folders that TensorBoard shows; none while it doesn't answer."""
        pod = self.pod("tensorboard")
        if pod is None:
            return set()
        url = f"http://{pod['status']['podIP']}:6006/data/runs"
        try:
            with urllib.request.urlopen(url, timeout=5) as response:
                return set(json.load(response))
        except OSError:
            return set()

    def reasons(self, kind: str) -> Counter[str]:
        """How often each reason was given in Events about Jobs or Deployments by our processes."""
        events = self.namespace.get("events")["items"]
        return Counter(
            {
                event["reason"]: event["count"]
                for event in events
                if event["involvedObject"]["kind"] == kind
                and event["source"].get("component", "").startswith("tandem-")
            }
        )

    # The run.

    def line(self) -> Line:
        return read_line(self.store)

    def newest_step(self) -> int:
        newest = self.line().newest
        return newest.step if newest else 0

    def attempts(self) -> tuple[Attempt, ...]:
        return tuple(self.line().attempts)

    def entries(self) -> dict[tuple[int, int], list[str]]:
        found: dict[tuple[int, int], list[str]] = {}
        for entry in read_ledger(self.store):
            found.setdefault(tuple(entry.checkpoint), []).append(entry.outcome.value)
        return found

    def average_precision(self, checkpoint: tuple[int, int]) -> float:
        """As recorded."""
        (found,) = (e for e in read_ledger(self.store) if tuple(e.checkpoint) == checkpoint)
        value = found.metrics[MAIN_METRIC]
        assert value is not None
        return value

    def until(self, condition: Callable[[], Any], *, seconds: float = 240, what: str = "") -> Any:
        """What the condition gives, once it is true of it."""
        deadline = time.monotonic() + seconds
        while not (found := condition()):
            if time.monotonic() > deadline:
                raise AssertionError(f"{what or condition} took too long\n{self.story()}")
            time.sleep(0.5)
        return found

    def story(self) -> str:
        """What a person would look at first."""
        parts = [self.namespace.kubectl("get", "all"), self.namespace.kubectl("get", "events")]
        for pod in self.objects("pods"):
            name = pod["metadata"]["name"]
            done = subprocess.run(
                [
                    "kubectl",
                    "-n",
                    self.namespace.name,
                    "logs",
                    name,
                    "--tail=40",
                    "--all-containers",
                ],
                capture_output=True,
                text=True,
            )
            parts.append(f"== {name}\n{done.stdout}{done.stderr}")
        return "\n".join(parts)
