"""A scene on the Kubernetes node: a release in a namespace of its own."""

import base64
import contextlib
import json
from pathlib import Path

from tests.cluster.experiments import RELEASE, Experiment
from tests.faults.scenes import NotShownError, Questions, own_environment
from tests.rig.cluster import new_namespace

_POD_SECONDS = 480.0
_EVERY_N = 40
_SMALL = {"cpu": "50m", "memory": "300Mi"}


class ReleaseScene(Questions):
    """An experiment, and questions about it by its namespace and name.

    Args:
        experiment: the release, not yet installed.
        files: records and label map.
        folder: for answers.
        common: to all scenes.
    """

    look_seconds = 2.0  # each look is a process of its own

    def __init__(self, experiment, *, files, folder: Path, common):
        self.files = files
        self.namespace = experiment.namespace
        super().__init__(
            *("-n", self.namespace.name, RELEASE),
            environment=own_environment(STORAGE_EMULATOR_HOST=experiment.gcs.url),
            folder=folder,
            common=common,
        )
        self._experiment = experiment

    def deploy(self, *flags, has_evaluator=False):
        """Installs the release with other values than good ones.

        Most do without an evaluator, as each one takes the machine some ten seconds to start.
        """
        self.put_data("data")
        parts = {}
        for component in ("trainer", "evaluator"):
            parts |= {f"{component}.resources.requests.{k}": v for k, v in _SMALL.items()}
            # Pods that draw their own images import TensorFlow once more each.
            parts[f"{component}.extraInitContainers"] = []
            parts[f"{component}.extraVolumes"] = [{"name": "data", "configMap": {"name": "data"}}]
        parts["evaluator.enabled"] = has_evaluator
        parts["tensorboard.enabled"] = False
        self._experiment.deploy(
            *(flag for k, v in parts.items() for flag in ("--set-json", f"{k}={json.dumps(v)}")),
            *flags,
            num_steps=0,
            every_n=_EVERY_N,
        )

    def put_data(self, name, *, labels=None):
        """The records and the label map, small enough for a ConfigMap."""
        data = {
            "label_map.pbtxt": labels.encode() if labels else self.files["labels"].read_bytes(),
            "train.record": self.files["train"].read_bytes(),
            "val.record": self.files["held_out"].read_bytes(),
        }
        self.namespace.apply(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": name},
                "binaryData": {key: base64.b64encode(part).decode() for key, part in data.items()},
            }
        )

    def job(self):
        return self._experiment.job()

    def suspend(self, job, *, is_suspended):
        patch = json.dumps({"spec": {"suspend": is_suspended}})
        self.namespace.kubectl("patch", "job", job, "--patch", patch)

    def has_scored(self):
        return bool(self._experiment.entries())

    def until_pod(self, component, condition):
        """Some pod of the component is as it should be for the fault to be there."""
        self.until(
            lambda: any(condition(pod) for pod in self._experiment.objects("pods", component)),
            f"the state of the {component}'s pod",
            seconds=_POD_SECONDS,
        )

    def until_job(self, condition):
        self.until(lambda: condition(self.job()), "the state of the Job", seconds=_POD_SECONDS)

    def until_event(self, kind, reason):
        def is_told():
            events = self.namespace.get("events")["items"]
            return any(
                event["involvedObject"]["kind"] == kind and event["reason"] == reason
                for event in events
            )

        self.until(is_told, f"an Event {reason} about a {kind}")

    def until_quota(self, name):
        """The quota is in force."""
        self.until(
            lambda: self.namespace.get("resourcequota", name).get("status", {}).get("hard"),
            f"the quota {name}",
        )

    def end(self):
        """Nothing of ours runs outside of the namespace."""

    def keep_facts(self):
        """What people would look at first."""
        try:
            story = self._experiment.story()
        except AssertionError as error:
            story = str(error)
        (self.folder / "story.txt").write_text(story)


@contextlib.contextmanager
def release_scene(folder: Path, *, server, files, common):
    """In a namespace that is gone afterwards."""
    with new_namespace() as namespace, server.client() as client:
        experiment = Experiment(namespace, server, client)
        try:
            yield ReleaseScene(experiment, files=files, folder=folder / "scene", common=common)
        except AssertionError as error:
            raise NotShownError(str(error)[:500]) from error
