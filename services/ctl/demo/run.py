"""`tandem demo`: makes the data, starts trainer and evaluator, shows both until they end."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from google.protobuf import text_encoding
from rich.console import Console
from rich.live import Live

from services.ctl.demo.facts import EVALUATOR_NAME, read_facts
from services.ctl.demo.processes import Process
from services.ctl.demo.terminal import control_characters_hidden
from services.ctl.demo.view import Facts, line, screen
from services.ctl.tables import metrics_table
from services.exits import Exit
from services.signals import STOP_SIGNALS, StopRequest
from tandem.checkpoints.attempts import Outcome
from tandem.checkpoints.heartbeats import read_heartbeats
from tandem.checkpoints.lines import read_line
from tandem.checkpoints.opening import open_store
from tandem.config.pipeline import load_pipeline
from tandem.errors import ConfigError

if TYPE_CHECKING:
    from services.ctl.shapes import ShapesFiles

CONFIG = Path(__file__).with_name("pipeline.config")

_LOOK_SECONDS = 0.5
_PATIENCE_SECONDS = 60.0
_PLAIN_LINE_SECONDS = 10.0


def run_demo(*, folder: Path, run: Path | None, num_steps: int | None, console: Console) -> Exit:
    """Runs the demo to its end, or until Ctrl-C.

    Args:
        folder: where data and runs go.
        run: run folder to begin or to go on with; None takes the first that isn't finished.
        num_steps: None takes the config's.
        console: where to show it.

    Raises:
        ConfigError: the number of steps is none.
    """
    if num_steps is not None and num_steps < 1:
        raise ConfigError(f"--steps is {num_steps}; expected 1 or more")
    run = run or choose_run(folder)
    data = folder / "demo-data"
    console.print(f"data in {data}, run in {run}")
    files = _make_data(data)
    labels, train, held_out = (_quoted(path) for path in (files.label_map, *files[:2]))
    overrides = [
        f"train_input_reader {{ label_map_path: {labels} "
        f"tf_record_input_reader {{ input_path: {train} }} }}",
        f"eval_input_reader {{ label_map_path: {labels} shuffle: false "
        f"tf_record_input_reader {{ input_path: {held_out} }} }}",
    ]
    if num_steps is not None:
        overrides.append(f"train_config {{ num_steps: {num_steps} }}")
    last_step = load_pipeline(str(CONFIG), overrides=overrides).train_config.num_steps
    common = ["--run", str(run), "--config", str(CONFIG)]
    for override in overrides:
        common += ["--override", override]
    stop = StopRequest()
    with _signals_ask(stop):
        return _Demo(run, common, last_step, console).watch(stop)


def _make_data(folder: Path) -> ShapesFiles:
    # It needs TensorFlow, which takes seconds to import.
    from services import quiet  # noqa: PLC0415

    with quiet.greetings_withheld():
        from services.ctl.shapes import make_shapes  # noqa: PLC0415

    return make_shapes(folder)


def _quoted(path: Path) -> str:
    """As a string of a text proto, whatever the path's characters."""
    return f'"{text_encoding.CEscape(os.fsencode(path), as_utf8=False)}"'


def choose_run(folder: Path) -> Path:
    """The first of `demo`, `demo-2`, ... that is not finished."""
    number = 1
    while True:
        run = folder / ("demo" if number == 1 else f"demo-{number}")
        if not run.exists() or read_line(open_store(str(run))).outcome is not Outcome.FINISHED:
            return run
        number += 1


@contextmanager
def _signals_ask(stop: StopRequest) -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    stop.install()
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Demo:
    def __init__(self, run: Path, common: list[str], last_step: int, console: Console) -> None:
        self._run = run
        self._last_step = last_step
        self._console = console
        self._store = open_store(str(run))
        self._began = time.monotonic()
        self._earlier_beats = {beat.nonce for beat in read_heartbeats(self._store).values()}
        self._shown: Facts | None = None
        every = max(1, last_step // 8)
        logs = run / "logs"
        self._trainer = Process(
            "services.trainer",
            [*common, *_flags(checkpoint_every_n=every, log_interval=5, heartbeat_interval=0.5)],
            log=logs / "trainer.log",
        )
        self._evaluator = Process(
            "services.evaluator",
            [*common, *_flags(name=EVALUATOR_NAME, poll_interval=1, lease_seconds=20)],
            log=logs / "evaluator.log",
        )

    def watch(self, stop: StopRequest) -> Exit:
        """Shows the run until it is over, or until a signal, then ends what still runs."""
        try:
            with self._display() as show:
                while not stop() and not self._is_over():
                    show(self._facts())
                    stop.wait(_LOOK_SECONDS)
                self._ask_both_to_stop()
                self._show_the_end(show)
        except SystemExit:  # rich's answer to a reader of our output that went away
            self._console = Console(stderr=True)
        except KeyboardInterrupt:  # the second Ctrl-C: at once, then
            for process in self._processes:
                process.end(patience_seconds=0)
            raise
        self._ask_both_to_stop()
        trainer, evaluator = (p.end(patience_seconds=_PATIENCE_SECONDS) for p in self._processes)
        return self._conclude(trainer, evaluator)

    @property
    def _processes(self) -> tuple[Process, Process]:
        return self._trainer, self._evaluator

    def _ask_both_to_stop(self) -> None:
        for process in self._processes:
            process.ask_to_stop()

    def _show_the_end(self, show: Callable[[Facts], None]) -> None:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while any(process.exit_code is None for process in self._processes):
            if time.monotonic() > deadline:
                return
            show(self._facts()._replace(is_stopping=True))
            time.sleep(_LOOK_SECONDS / 2)
        show(self._facts())

    def _is_over(self) -> bool:
        """When the evaluator has ended; or the trainer has, without having finished."""
        trainer, evaluator = self._trainer.exit_code, self._evaluator.exit_code
        return evaluator is not None or trainer not in (None, Exit.FINISHED)

    def _facts(self) -> Facts:
        facts = read_facts(
            self._store,
            logs={"trainer": self._trainer.log, "evaluator": self._evaluator.log},
            last_step=self._last_step,
            elapsed_seconds=time.monotonic() - self._began,
            not_of_ours=self._earlier_beats,
        )
        if facts.loss is None and self._shown is not None:  # the last beats say the phase alone
            facts = facts._replace(
                loss=self._shown.loss, steps_per_second=self._shown.steps_per_second
            )
        self._shown = facts
        return facts

    @contextmanager
    def _display(self) -> Iterator[Callable[[Facts], None]]:
        if self._console.is_terminal:
            with (
                control_characters_hidden(),
                Live(console=self._console, refresh_per_second=4) as live,
            ):
                yield lambda facts: live.update(screen(facts))
            return
        shown = 0.0

        def show(facts: Facts) -> None:
            nonlocal shown
            if facts.elapsed_seconds - shown >= _PLAIN_LINE_SECONDS:
                shown = facts.elapsed_seconds
                self._console.print(line(facts), soft_wrap=True, highlight=False)

        yield show

    def _conclude(self, trainer: int, evaluator: int) -> Exit:
        try:
            return self._say_how_it_ended(trainer, evaluator)
        except SystemExit:
            self._console = Console(stderr=True)
            return self._say_how_it_ended(trainer, evaluator)

    def _say_how_it_ended(self, trainer: int, evaluator: int) -> Exit:
        facts, console = self._facts(), self._console
        if facts.scores:
            console.print(metrics_table([(score.step, score.metrics) for score in facts.scores]))
        console.print(f"\nTensorBoard: .venv/bin/tensorboard --logdir {self._run}", soft_wrap=True)
        if trainer == Exit.FINISHED and evaluator == Exit.FINISHED:
            console.print(f"Finished in {facts.elapsed_seconds:.0f} s.")
            return Exit.FINISHED
        if Exit.SAVED_RESUME_ME in (trainer, evaluator) and {trainer, evaluator} <= {0, 42}:
            step = facts.checkpoints[-1] if facts.checkpoints else 0
            console.print(
                f"Stopped; step {step} is saved. To go on: make demo, or "
                f".venv/bin/tandem demo --run {self._run}",
                soft_wrap=True,
            )
            return Exit.SAVED_RESUME_ME
        console.print(
            f"The trainer left with {trainer} and the evaluator with {evaluator}; their last words:"
        )
        for log in (self._trainer.log, self._evaluator.log):
            console.print(f"{log}:", soft_wrap=True)
            tail = log.read_text(errors="replace").splitlines()[-8:]
            console.print("\n".join(tail), markup=False, highlight=False)
        return Exit.UNEXPECTED


def _flags(**settings: object) -> list[str]:
    return [f"--{name.replace('_', '-')}={value}" for name, value in settings.items()]
