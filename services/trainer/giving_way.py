"""When the process is to stop: does the save under way still get its time, or does the last one?

Both rarely fit. The last one is worth more, as it holds the newer step, but only if it can be done
by the deadline; what the save under way has taken so far says how long that will be.
"""

from __future__ import annotations

from collections.abc import Callable

_NEARLY_DONE = 0.75
_MARGIN = 1.2  # of the time that the last one is expected to take


class GivenUpError(Exception):
    """A save that is ended for a later one."""


class Progress:
    """Looks, before each piece of a save's data goes, whether the save is still wanted.

    Args:
        num_bytes: of the data.
        is_wanted: told which part of them has gone, from 0 to 1.
    """

    def __init__(self, num_bytes: int, is_wanted: Callable[[float], bool]) -> None:
        self._num_bytes = max(1, num_bytes)
        self._is_wanted = is_wanted
        self._gone = 0

    def __call__(self, size: int) -> None:
        """Raises GivenUpError."""
        if not self._is_wanted(self._gone / self._num_bytes):
            raise GivenUpError
        self._gone += size


def is_worth_ending(part_gone: float, *, seconds_gone: float, seconds_left: float) -> bool:
    """Whether a save under way is to be ended although a later one waits to be the last.

    Args:
        part_gone: of its bytes, from 0 to 1.
        seconds_gone: since it began.
        seconds_left: until the process has to be gone.
    """
    if part_gone >= _NEARLY_DONE:
        return True
    if part_gone <= 0:
        return False
    whole = seconds_gone / part_gone
    return _MARGIN * whole > seconds_left  # the last one would hardly get done
