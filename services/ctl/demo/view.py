"""What the demo shows of a run: facts in, something printable out. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from services.ctl.tables import metrics_table, short

LOG_LINES = 6
SCORE_ROWS = 8


class Score(NamedTuple):
    """The twelve COCO numbers of one checkpoint; None where there is no ground truth."""

    step: int
    metrics: dict[str, float | None]


class Facts(NamedTuple):
    """What is known of the run at one moment.

    Attributes:
        elapsed_seconds: since the demo began.
        trainer_phase: from its heartbeat; None before the first.
        step: newest step that the trainer spoke of.
        last_step: where it ends.
        loss: total loss at that step.
        steps_per_second: recent.
        eta_seconds: until the last step.
        evaluator_phase: from its heartbeat; None before the first.
        evaluating: step of the checkpoint in work.
        checkpoints: steps of the committed checkpoints.
        scores: in order of step.
        log: newest lines of both processes.
        is_stopping: whether both were asked to stop.
    """

    elapsed_seconds: float
    trainer_phase: str | None
    step: int
    last_step: int
    loss: float | None
    steps_per_second: float | None
    eta_seconds: float | None
    evaluator_phase: str | None
    evaluating: int | None
    checkpoints: Sequence[int]
    scores: Sequence[Score]
    log: Sequence[str]
    is_stopping: bool = False

    @property
    def queue(self) -> list[int]:
        """Steps of committed checkpoints that have no score yet."""
        scored = {score.step for score in self.scores}
        return [step for step in self.checkpoints if step not in scored]


def clock(seconds: float | None) -> str:
    """Seconds as `m:ss`, or a dash when unknown."""
    if seconds is None:
        return "-"
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def _speed(steps_per_second: float | None) -> str:
    return "-" if steps_per_second is None else f"{steps_per_second:.1f}"


def line(facts: Facts) -> str:
    """The facts in one plain line, for an output that is no terminal."""
    best = best_ap(facts.scores)
    return (
        f"{clock(facts.elapsed_seconds)} trainer {facts.trainer_phase or 'starting'} "
        f"step {facts.step}/{facts.last_step} loss {short(facts.loss)} "
        f"{_speed(facts.steps_per_second)} steps/s eta {clock(facts.eta_seconds)} | evaluator "
        f"{facts.evaluator_phase or 'starting'} scored {len(facts.scores)} "
        f"queued {len(facts.queue)} best AP@0.5 {short(best)}"
    )


def best_ap(scores: Sequence[Score]) -> float | None:
    """The highest AP@0.5 so far."""
    values = [score.metrics.get("DetectionBoxes_Precision/mAP@.50IOU") for score in scores]
    return max((value for value in values if value is not None), default=None)


def screen(facts: Facts) -> RenderableType:
    """The facts as a live screen: two processes, the scores so far, the newest log lines."""
    return Panel(
        Group(
            _trainer(facts),
            Text(),
            _evaluator(facts),
            Text(),
            metrics_table(
                [(score.step, score.metrics) for score in facts.scores[-SCORE_ROWS:]], full=False
            )
            if facts.scores
            else Text("The first scores come after the first checkpoint.", style="dim"),
            Text(),
            Text("\n".join(facts.log[-LOG_LINES:]), style="dim", no_wrap=True, overflow="ellipsis"),
        ),
        title="tandem demo",
        subtitle=f"{clock(facts.elapsed_seconds)} elapsed, {_what_ctrl_c_does(facts)}",
        padding=(1, 2),
    )


def _what_ctrl_c_does(facts: Facts) -> str:
    if facts.is_stopping:
        return "stopping: the step is finished and saved"
    return "Ctrl-C stops and keeps everything"


def _trainer(facts: Facts) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(width=10, style="bold")
    grid.add_column(width=12)
    grid.add_column(width=28)
    grid.add_column()
    grid.add_row(
        "trainer",
        facts.trainer_phase or "starting",
        ProgressBar(total=facts.last_step, completed=facts.step, width=28),
        f"step {facts.step} of {facts.last_step}",
    )
    grid.add_row(
        "",
        "",
        f"loss {short(facts.loss)}   {_speed(facts.steps_per_second)} steps/s",
        f"about {clock(facts.eta_seconds)} left",
    )
    return grid


def _evaluator(facts: Facts) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(width=10, style="bold")
    grid.add_column(width=12)
    grid.add_column(width=28)
    grid.add_column()
    doing = "" if facts.evaluating is None else f"scoring step {facts.evaluating}"
    queue = ", ".join(str(step) for step in facts.queue) or "empty"
    grid.add_row("evaluator", facts.evaluator_phase or "starting", doing, f"queue: {queue}")
    grid.add_row(
        "",
        "",
        f"{len(facts.checkpoints)} kept, {len(facts.scores)} scored",
        f"best AP@0.5 {short(best_ap(facts.scores))}",
    )
    return grid
