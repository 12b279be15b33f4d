"""Real trainers and evaluators on an emulated bucket, scraped as pods would be."""

from __future__ import annotations

import contextlib
import math
import os
import re
import shutil
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

from services.ctl.demo.run import CONFIG
from services.ctl.shapes import ShapesFiles
from tests.deploy.dashboards.prometheus import Prometheus
from tests.rig.gcs import BUCKET, GcsServer
from tests.rig.ports import free_port
from tests.small_experiment import SMALL
from tests.soak.processes import Process

NAMESPACE = "research"
EVAL_SETS = ("held-out", "train")

_TWO_SETS = """
eval_input_reader {{
  name: "held-out" label_map_path: "{labels}" shuffle: false
  tf_record_input_reader {{ input_path: "{held_out}" }}
}}
eval_input_reader {{
  name: "train" label_map_path: "{labels}" shuffle: false
  tf_record_input_reader {{ input_path: "{seen}" }}
}}
"""


class Pod:
    """A process of a run, under the address that it is scraped at."""

    def __init__(self, process: Process, address: str) -> None:
        self.process = process
        self.address = address

    def metrics(self) -> str:
        """What it answers now; nothing while it can't."""
        with (
            contextlib.suppress(OSError),
            urllib.request.urlopen(f"http://{self.address}/metrics", timeout=5) as answer,
        ):
            return answer.read().decode()
        return ""

    def saves(self) -> int:
        """Checkpoints that this trainer has committed."""
        return self._value('tandem_ckpt_saves_total{outcome="ok"}')

    def step(self) -> int:
        """The newest step of this trainer."""
        return self._value("tandem_train_step")

    def scored_sets(self) -> set[str]:
        """Eval sets that this evaluator has an AP of."""
        return set(re.findall(r'tandem_eval_metric\{eval_set="([^"]+)"', self.metrics()))

    def _value(self, series: str) -> int:
        lines = [line for line in self.metrics().splitlines() if line.startswith(f"{series} ")]
        value = float(lines[0].split()[1]) if lines else 0.0
        return 0 if math.isnan(value) else int(value)


class Runs:
    """Starts pods and tells Prometheus of them.

    Args:
        folder: for logs and files under way.
        gcs: where the runs are.
        prometheus: scrapes the pods.
        shapes: what to train and evaluate on.
    """

    def __init__(
        self, folder: Path, gcs: GcsServer, prometheus: Prometheus, shapes: ShapesFiles
    ) -> None:
        self._folder = folder
        self._prometheus = prometheus
        # A file of its own, so that what happens to the trainer's is nothing to the evaluator.
        seen = shutil.copy(shapes.train, shapes.train.with_name("seen.record"))
        self._files = {
            "labels": shapes.label_map,
            "train": shapes.train,
            "held_out": shapes.held_out,
            "seen": seen,
        }
        self._pods: list[Pod] = []
        self._environment = {
            **os.environ,  # noqa: TID251
            "STORAGE_EMULATOR_HOST": gcs.url,
            "TMPDIR": str(folder),
            "CUDA_VISIBLE_DEVICES": "-1",
            "TF_CPP_MIN_LOG_LEVEL": "2",
        }

    def start(self, component: str, run: str, *flags: object, override: str = SMALL) -> Pod:
        """Starts a `trainer` or an `evaluator` of a run."""
        pod = f"{run}-{component}-{len(self._pods)}"
        port = free_port()
        process = Process(
            pod,
            f"services.{component}",
            [
                *("--run", f"gs://{BUCKET}/{run}", "--config", CONFIG),
                *("--override", override.format(num_steps=100_000, **self._files)),
                *("--override", _TWO_SETS.format(**self._files)),
                *("--metrics-port", port, *flags),
            ],
            log=self._folder / f"{pod}.log",
            environment=self._environment,
        )
        made = Pod(process, f"127.0.0.1:{port}")
        self._pods.append(made)
        labels = {"namespace": NAMESPACE, "run": run, "pod": pod, "container": component}
        self._prometheus.scrape(made.address, labels)
        return made

    def forget(self, pod: Pod) -> None:
        """Ends a pod that may have ended already; it is scraped no more."""
        pod.process.end()
        self._prometheus.forget(pod.address)

    def wait_for(self, what: Callable[[], bool], pod: Pod, seconds: float = 600) -> None:
        """Returns once it holds; fails when the pod ends or time is over."""
        deadline = time.monotonic() + seconds
        while not what():
            assert pod.process.exit_code is None, pod.process.text
            assert time.monotonic() < deadline, pod.process.text
            time.sleep(0.2)

    def end(self) -> None:
        for pod in self._pods:
            pod.process.end()


@contextlib.contextmanager
def running(
    folder: Path, gcs: GcsServer, prometheus: Prometheus, shapes: ShapesFiles
) -> Iterator[Runs]:
    """Runs that end with the context."""
    runs = Runs(folder, gcs, prometheus, shapes)
    try:
        yield runs
    finally:
        runs.end()
