"""Side jobs of the step loop; each says when it is due and has one effect."""

from __future__ import annotations

import logging
from collections.abc import Callable

import tensorflow as tf

from services.events import EventFolder
from services.trainer.loop import StepFacts
from services.trainer.pace import Pace

logger = logging.getLogger(__name__)


class EveryStep:
    """Does something after each step."""

    def __init__(self, effect: Callable[[StepFacts], None]) -> None:
        self._effect = effect

    def is_due(self, facts: StepFacts) -> bool:
        """Always."""
        return True

    def act(self, facts: StepFacts) -> None:
        """Does it."""
        self._effect(facts)


class EveryNSteps:
    """Does something after every step whose number ``n`` divides."""

    def __init__(self, effect: Callable[[StepFacts], None], *, n: int) -> None:
        self._effect = effect
        self._n = n

    def is_due(self, facts: StepFacts) -> bool:
        """At multiples of ``n``."""
        return facts.step % self._n == 0

    def act(self, facts: StepFacts) -> None:
        """Does it."""
        self._effect(facts)


class EverySeconds:
    """Does something after the first step and then after the step that ends ``seconds`` later."""

    def __init__(
        self,
        effect: Callable[[StepFacts], None],
        *,
        seconds: float,
        monotonic: Callable[[], float],
    ) -> None:
        self._effect = effect
        self._seconds = seconds
        self._monotonic = monotonic
        self._last: float | None = None

    def is_due(self, facts: StepFacts) -> bool:
        """Once ``seconds`` have gone by since it was done last."""
        return self._last is None or self._monotonic() - self._last >= self._seconds

    def act(self, facts: StepFacts) -> None:
        """Does it."""
        self._last = self._monotonic()
        self._effect(facts)


class ProgressLog:
    """Logs step, loss, speed and the time that is left."""

    def __init__(self, pace: Pace, *, last_step: int | None) -> None:
        self._pace = pace
        self._last_step = last_step

    def __call__(self, facts: StepFacts) -> None:
        """One line."""
        logger.info(
            "step %d%s loss %.4f (localization %.4f, classification %.4f, regularization %.4f) "
            "lr %.3g %.2f steps/s ETA %s",
            facts.step,
            f"/{self._last_step}" if self._last_step else "",
            facts.losses["Loss/total_loss"],
            facts.losses["Loss/localization_loss"],
            facts.losses["Loss/classification_loss"],
            facts.losses["Loss/regularization_loss"],
            facts.learning_rate,
            self._pace.steps_per_second or 0.0,
            _clock(self._pace.eta_seconds(facts.step, self._last_step)),
        )


def _clock(seconds: float | None) -> str:
    if seconds is None:
        return "unknown"
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}"


class Summaries:
    """Writes TensorBoard scalars under the Object Detection API's names."""

    def __init__(self, events: EventFolder, pace: Pace) -> None:
        self._events = events
        self._pace = pace

    def __call__(self, facts: StepFacts) -> None:
        """One point in every chart."""
        with self._events.at(facts.step):
            for tag, value in facts.losses.items():
                tf.summary.scalar(tag, value)
            tf.summary.scalar("learning_rate", facts.learning_rate)
            tf.summary.scalar("gradient_norm", facts.gradient_norm)
            tf.summary.scalar("data_seconds", facts.data_seconds)
            if self._pace.steps_per_second is not None:
                tf.summary.scalar("steps_per_sec", self._pace.steps_per_second)
