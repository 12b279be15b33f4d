"""A run small enough for tests, with real processes."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from services.ctl.demo.run import CONFIG
from services.ctl.shapes import ShapesSpec, make_shapes
from tests.small_experiment import SMALL


class Process:
    """A trainer or an evaluator, its output in a file."""

    def __init__(self, module, *arguments, output: Path):
        self.output = output
        with output.open("ab") as file:
            self._child = subprocess.Popen(
                [sys.executable, "-m", module, *map(str, arguments)],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
            )

    def send(self, number: signal.Signals) -> None:
        self._child.send_signal(number)

    def wait(self, seconds: float = 600) -> int:
        return self._child.wait(seconds)

    @property
    def log(self) -> str:
        return self.output.read_text()

    def wait_for_log(self, text: str, seconds: float = 400) -> None:
        """Returns once the log holds the text; fails when the process ends or time is over."""
        deadline = time.monotonic() + seconds
        while text not in self.log:
            assert self._child.poll() is None, f"ended without {text!r}:\n{self.log}"
            assert time.monotonic() < deadline, f"no {text!r} in {seconds} s:\n{self.log}"
            time.sleep(0.1)

    def end(self) -> None:
        if self._child.poll() is None:
            self._child.kill()
            self._child.wait()


@pytest.fixture(scope="session")
def shapes(tmp_path_factory):
    spec = ShapesSpec(num_train=16, num_held_out=6, image_size=64)
    return make_shapes(tmp_path_factory.mktemp("shapes"), spec)


class SmallRun:
    """Starts processes on one run folder."""

    def __init__(self, folder: Path, shapes):
        self.folder = folder
        self.run = folder / "run"
        self._shapes = shapes
        self._started: list[Process] = []

    @property
    def label_map(self) -> Path:
        return self._shapes.label_map

    def override(self, num_steps: int) -> str:
        return SMALL.format(
            num_steps=num_steps,
            labels=self._shapes.label_map,
            train=self._shapes.train,
            held_out=self._shapes.held_out,
        )

    def _start(self, name: str, num_steps: int, *more) -> Process:
        process = Process(
            f"services.{name}",
            *("--run", self.run, "--config", CONFIG, "--override", self.override(num_steps)),
            *more,
            output=self.folder / f"{name}-{len(self._started)}.log",
        )
        self._started.append(process)
        return process

    def trainer(self, *more, num_steps: int) -> Process:
        return self._start("trainer", num_steps, "--log-interval", 0, *more)

    def evaluator(self, *more, num_steps: int) -> Process:
        return self._start("evaluator", num_steps, "--poll-interval", 0.5, *more)

    def end(self) -> None:
        for process in self._started:
            process.end()


@pytest.fixture
def small_run(tmp_path, shapes):
    run = SmallRun(tmp_path, shapes)
    yield run
    run.end()
