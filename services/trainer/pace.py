"""How fast training goes, and how long it will take."""

from __future__ import annotations

from collections import deque
from statistics import median

_WINDOW = 50
_LEAST_STALL_SECONDS = 300.0
_STALL_STEPS = 20


class Pace:
    """Speed over the last fifty steps, the first of all left out, which compiles.

    It is the median step that counts, as some wait for a checkpoint.
    """

    def __init__(self) -> None:
        self._seconds: deque[float] = deque(maxlen=_WINDOW)
        self._has_compiled = False
        self.median_seconds: float | None = None
        """Of one step; None before the second one."""

    def add(self, seconds: float) -> None:
        """Notes how long a step took."""
        if self._has_compiled:
            self._seconds.append(seconds)
            self.median_seconds = median(self._seconds)
        self._has_compiled = True

    @property
    def steps_per_second(self) -> float | None:
        """None before the second step."""
        if self.median_seconds is None:
            return None
        return 1.0 / max(self.median_seconds, 1e-9)  # a step of no time at all, in tests

    @property
    def stall_budget_seconds(self) -> float | None:
        """A step that takes longer is a stall; None before the second one."""
        if self.median_seconds is None:
            return None
        return max(_LEAST_STALL_SECONDS, _STALL_STEPS * self.median_seconds)

    def seconds_of(self, num_steps: int) -> float | None:
        """How long so many steps take; None when nothing was measured yet."""
        return None if self.median_seconds is None else num_steps * self.median_seconds

    def eta_seconds(self, step: int, last_step: int | None) -> float | None:
        """Seconds until ``last_step``; None when it is unknown or nothing was measured yet."""
        speed = self.steps_per_second
        if last_step is None or speed is None:
            return None
        return max(last_step - step, 0) / speed
