"""When to ask again: pauses that grow, with jitter, up to a deadline."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from tandem.checkpoints.surroundings import SYSTEM, Surroundings
from tandem.errors import StoreUnavailableError

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Backoff:
    """Pauses between tries, each of a random length up to a bound that grows (full jitter).

    Attributes:
        initial_seconds: bound of the first pause.
        factor: by which the bound grows from pause to pause.
        max_seconds: where it stops growing.
        deadline_seconds: no pause ends later than this after the beginning.
    """

    initial_seconds: float = 0.2
    factor: float = 2.0
    max_seconds: float = 10.0
    deadline_seconds: float = 60.0

    def pauses(self, surroundings: Surroundings = SYSTEM) -> Iterator[float]:
        """The pauses, which the caller sleeps; the deadline runs from this call on."""
        return self._pauses(surroundings.monotonic(), surroundings)

    def _pauses(self, began: float, surroundings: Surroundings) -> Iterator[float]:
        bound = self.initial_seconds
        while True:
            pause = bound * (1.0 - surroundings.random())  # never 0, which would ask at once
            if surroundings.monotonic() + pause - began > self.deadline_seconds:
                return
            yield pause
            bound = min(bound * self.factor, self.max_seconds)


DEFAULT_BACKOFF = Backoff()


def retried(
    call: Callable[[], _Result],
    *,
    backoff: Backoff = DEFAULT_BACKOFF,
    surroundings: Surroundings = SYSTEM,
) -> _Result:
    """Makes a call that may be repeated (a read, a listing) until the store answers.

    Raises:
        StoreUnavailableError: it did not, up to the deadline.
    """
    pauses = backoff.pauses(surroundings)
    while True:
        try:
            return call()
        except StoreUnavailableError:
            pause = next(pauses, None)
            if pause is None:
                raise
        surroundings.sleep(pause)
