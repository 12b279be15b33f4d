"""The wish to stop: SIGTERM, Ctrl-C, or a terminal that was closed."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from types import FrameType

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class StopRequestedError(Exception):
    """Raised out of a wait that a stop request cut short."""


class StopRequest:
    """Set by a signal; asked by loops, and waits end early when it is set."""

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._event = threading.Event()
        self._monotonic = monotonic
        self.asked_at: float | None = None
        """When it was asked for first; a deadline counts from here."""

    def __call__(self) -> bool:
        """Whether to stop."""
        return self._event.is_set()

    def set(self) -> None:
        """Asks to stop."""
        if self.asked_at is None:
            self.asked_at = self._monotonic()
        self._event.set()

    def wait(self, seconds: float) -> None:
        """Sleeps; returns early when asked to stop."""
        self._event.wait(seconds)

    def sleep(self, seconds: float) -> None:
        """Sleeps; raises StopRequestedError when asked to stop."""
        if self._event.wait(seconds):
            raise StopRequestedError

    def install(self) -> None:
        """Lets the first signal ask; a second Ctrl-C ends the process at once."""
        for number in STOP_SIGNALS:
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        self.set()
