"""Learning-rate schedules: plain functions of the step, evaluated on the host.

A schedule is no variable and lives in no checkpoint, so a resumed run follows the schedule of its
present config (a restored learning-rate variable would silently follow the old one). ``step``
counts finished steps: the first step is taken at ``schedule(0)``.

The formulas are those of the Object Detection API's ``learning_schedules``; its values in float32
agree to rounding.
"""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass
from typing import Protocol


class Schedule(Protocol):
    """The learning rate at a step."""

    def __call__(self, step: int) -> float:
        """The rate for the step that follows ``step`` finished ones."""


@dataclass(frozen=True, kw_only=True)
class Constant:
    """The same rate at every step."""

    learning_rate: float

    def __call__(self, step: int) -> float:
        """The constant."""
        return self.learning_rate


@dataclass(frozen=True, kw_only=True)
class CosineDecay:
    """Linear warm-up, an optional plateau, then half a cosine down to zero at ``total_steps``.

    Reference: Loshchilov and Hutter, SGDR, https://arxiv.org/abs/1608.03983 (without restarts).
    """

    learning_rate_base: float
    total_steps: int
    warmup_learning_rate: float
    warmup_steps: int
    hold_base_rate_steps: int = 0

    def __call__(self, step: int) -> float:
        """Zero from ``total_steps`` on."""
        if step < self.warmup_steps:
            rise = (self.learning_rate_base - self.warmup_learning_rate) / self.warmup_steps
            return self.warmup_learning_rate + rise * step
        start = self.warmup_steps + self.hold_base_rate_steps
        if step <= start and step < self.total_steps:
            return self.learning_rate_base
        if step >= self.total_steps:
            return 0.0
        progress = (step - start) / (self.total_steps - start)
        return 0.5 * self.learning_rate_base * (1.0 + math.cos(math.pi * progress))


@dataclass(frozen=True, kw_only=True)
class ExponentialDecay:
    """``initial_learning_rate * decay_factor ** (step / decay_steps)``, after an optional burn-in.

    With ``staircase`` the exponent is rounded down. Decay begins when the burn-in ends.
    """

    initial_learning_rate: float
    decay_steps: int
    decay_factor: float
    staircase: bool = True
    burnin_learning_rate: float = 0.0
    burnin_steps: int = 0
    min_learning_rate: float = 0.0

    def __call__(self, step: int) -> float:
        """Never below ``min_learning_rate``, except during the burn-in."""
        if step < self.burnin_steps:
            # A burn-in rate of zero stands for "not set" in the config: the initial rate applies.
            return self.burnin_learning_rate or self.initial_learning_rate
        exponent = (step - self.burnin_steps) / self.decay_steps
        if self.staircase:
            exponent = math.floor(exponent)
        decayed = self.initial_learning_rate * self.decay_factor**exponent
        return max(decayed, self.min_learning_rate)


@dataclass(frozen=True, kw_only=True)
class ManualSteps:
    """``rates[i]`` from ``boundaries[i - 1]`` on; with ``warmup`` a rise to ``rates[1]`` first."""

    boundaries: tuple[int, ...]
    rates: tuple[float, ...]
    warmup: bool = False

    def __call__(self, step: int) -> float:
        """The rate of the interval that holds ``step``."""
        if self.warmup and self.boundaries and step < self.boundaries[0]:
            rise = (self.rates[1] - self.rates[0]) / self.boundaries[0]
            return self.rates[0] + rise * step
        return self.rates[bisect.bisect_right(self.boundaries, step)]
