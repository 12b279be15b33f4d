"""Axes: where their marks are, and what stands beside them."""

from __future__ import annotations

import math
from datetime import datetime, timezone
from typing import NamedTuple

_SECONDS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200)


class Frame(NamedTuple):
    """A plot's area in pixels, and the values at its edges."""

    left: float
    right: float
    top: float
    bottom: float
    start: float
    end: float
    low: float
    high: float

    def x(self, when: float) -> float:
        share = (when - self.start) / (self.end - self.start)
        return self.left + share * (self.right - self.left)

    def y(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return self.bottom - share * (self.bottom - self.top)


def marks(low: float, high: float, about: int, *, unit: str) -> list[float]:
    """Round values from at or below the lowest to at or above the highest."""
    if high <= low:
        high = low + 1
    raw = (high - low) / about
    size = 10.0 ** math.floor(math.log10(raw))
    steps = _SECONDS if unit == "s" and raw > 1 else [size * m for m in (1, 2, 2.5, 5, 10)]
    step = next((each for each in steps if each >= raw * 0.999), raw)
    first = math.floor(low / step + 1e-9)
    last = math.ceil(high / step - 1e-9)
    return [number * step for number in range(first, last + 1)]


def clocks(frame: Frame) -> list[tuple[float, str]]:
    """Round moments within a frame's time, about one in 75 pixels, as a clock shows them."""
    span = frame.end - frame.start
    about = max(2, round((frame.right - frame.left) / 75))
    step = next((seconds for seconds in _SECONDS if span / seconds <= about), 86400)
    form = "%H:%M:%S" if step < 60 else "%H:%M"
    first, last = math.ceil(frame.start / step), math.floor(frame.end / step)
    return [
        (when, datetime.fromtimestamp(when, tz=timezone.utc).strftime(form))
        for when in (float(number * step) for number in range(first, last + 1))
    ]
