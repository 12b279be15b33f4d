"""Where the trainer's time goes that does not go into new steps."""

from __future__ import annotations

import time
from collections.abc import Callable

from services.trainer.loop import StepFacts
from tandem.checkpoints.attempts import Outcome
from tandem.checkpoints.lines import Line
from tandem.telemetry.labels import PreemptionReason
from tandem.telemetry.trainer_metrics import TrainerMetrics

_REASONS: dict[Outcome | None, PreemptionReason] = {
    None: "killed",  # it left no word
    Outcome.PREEMPTED: "asked",
    Outcome.FAILED: "failed",
}


def endings_before(line: Line, attempt: int) -> tuple[PreemptionReason, ...]:
    """How the attempts before one ended that did not finish."""
    ends = [line.ends.get(a.number) for a in line.attempts if a.number < attempt]
    outcomes = [end.outcome if end else None for end in ends]
    return tuple(_REASONS[outcome] for outcome in outcomes if outcome in _REASONS)


class Accounting:
    """Sorts the time of each step; what saves cost is counted where they stall.

    Args:
        metrics: that it is counted in.
        began: when the process did.
        redone_until: the step that was reached before; up to it steps are trained again.
        monotonic: seconds.
    """

    def __init__(
        self,
        metrics: TrainerMetrics,
        *,
        began: float,
        redone_until: int,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._metrics = metrics
        self._began = began
        self._redone_until = redone_until
        self._monotonic = monotonic
        self._has_started = False

    def after_step(self, facts: StepFacts) -> None:
        """Counts the step; all up to the end of the first, which compiles, is starting."""
        if not self._has_started:
            self._has_started = True
            self._metrics.count_badput("starting", self._monotonic() - self._began)
            return
        self._metrics.count_badput("data", facts.data_seconds)
        if facts.step <= self._redone_until:
            self._metrics.count_badput("lost", facts.seconds - facts.data_seconds)
