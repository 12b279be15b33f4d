"""Whether a process still gets on, by its own loop's word.

The thread that answers ``/healthz`` runs on although the loop hangs, so it proves nothing. The loop
beats at each step, and says how long the next beat may take: compiling the first step takes
minutes, the hundredth a second.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Literal, NamedTuple


class HealthReport(NamedTuple):
    """How a process is."""

    status: Literal["ok", "stalled"]
    phase: str
    """What it is, or was last, doing."""
    step: int | None
    """The step it is at; None before there is one."""
    seconds_since_progress: float
    """Since the last beat, by the process's monotonic clock."""


class Health:
    """Keeps the time of the last beat; may be read from any thread."""

    def __init__(
        self,
        *,
        patience_seconds: float,
        phase: str = "starting",
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begins with a beat.

        Args:
            patience_seconds: how long a beat is good for, unless it says otherwise.
            phase: what the process is doing.
            monotonic: seconds.
        """
        self._monotonic = monotonic
        self._default_patience = patience_seconds
        self._lock = threading.Lock()
        self._step: int | None = None
        self._phase = phase
        self._patience = patience_seconds
        self._beaten_at = monotonic()

    def beat(
        self,
        *,
        phase: str | None = None,
        step: int | None = None,
        patience_seconds: float | None = None,
    ) -> None:
        """Says that the loop got on.

        Args:
            phase: what it does now; None: the same as before.
            step: where it is; None: the same as before.
            patience_seconds: how long this beat is good for; None: the default.
        """
        with self._lock:
            self._beaten_at = self._monotonic()
            self._phase = self._phase if phase is None else phase
            self._step = self._step if step is None else step
            self._patience = (
                self._default_patience if patience_seconds is None else patience_seconds
            )

    def report(self) -> HealthReport:
        """How it is now."""
        with self._lock:
            silence = self._monotonic() - self._beaten_at
            status: Literal["ok", "stalled"] = "ok" if silence <= self._patience else "stalled"
            return HealthReport(status, self._phase, self._step, silence)
