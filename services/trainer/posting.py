"""What the trainer's heartbeat says beyond the phase and the step."""

from __future__ import annotations

from services.trainer.beating import Beats
from services.trainer.loop import StepFacts
from services.trainer.pace import Pace
from services.trainer.saving import Saver
from tandem.checkpoints.heartbeats import Fact


class Posts:
    """Posts what the trainer is doing with all that is known of how it gets on.

    Args:
        beats: write it.
        pace: of the steps.
        saver: of the checkpoints.
        last_step: where training ends; None: nowhere.
        checkpoint_every_n: steps between two checkpoints.
    """

    def __init__(
        self,
        beats: Beats,
        pace: Pace,
        saver: Saver,
        *,
        last_step: int | None,
        checkpoint_every_n: int,
    ) -> None:
        self._beats = beats
        self._pace = pace
        self._saver = saver
        self._last_step = last_step
        self._checkpoint_every_n = checkpoint_every_n
        self._step: int | None = None
        self._total_loss: float | None = None

    def after_step(self, facts: StepFacts) -> None:
        """Something new to write, for whenever the next beat is due."""
        self._total_loss = facts.losses["Loss/total_loss"]
        self.say("training", facts.step)

    def say(self, phase: str, step: int | None = None) -> None:
        """Says what the trainer is doing; returns at once. The step stays until it is another."""
        self._step = self._step if step is None else step
        self._beats.post(phase, self._step, **self._facts())

    def _facts(self) -> dict[str, Fact]:
        pace, saver = self._pace, self._saver
        return {
            "last_step": self._last_step,
            "total_loss": self._total_loss,
            "steps_per_second": pace.steps_per_second,
            "eta_seconds": pace.eta_seconds(self._step or 0, self._last_step),
            "median_step_seconds": pace.median_seconds,
            "stall_budget_seconds": pace.stall_budget_seconds,
            "checkpoint_every_n": self._checkpoint_every_n,
            "save_interval_seconds": pace.seconds_of(self._checkpoint_every_n),
            "committed_step": saver.committed_step,
            "pending_saves": saver.num_pending,
            "save_failures": saver.num_failures,
        }
