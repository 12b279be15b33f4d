"""How many Events a process may write, and which say the same. Pure but for the clock it is given.

Events are for people who look now: the API server forgets them after an hour, and a process in
trouble must not flood it. So the same Event again only counts up the first one, and all of them
share a budget that fills up slowly.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

# Kubernetes' own components allow as much for one object: 25 at once, then one in five minutes.
BURST = 25
REFILL_SECONDS = 300.0
_MAX_REMEMBERED = 100


class Said(NamedTuple):
    """An Event that was written: its name in the cluster, and how often it was said."""

    name: str
    times: int


class Budget:
    """A bucket of tokens; each Event that is written takes one.

    Args:
        burst: how many fit in.
        refill_seconds: time after which one comes back.
        monotonic: seconds.
    """

    def __init__(
        self,
        *,
        monotonic: Callable[[], float],
        burst: int = BURST,
        refill_seconds: float = REFILL_SECONDS,
    ) -> None:
        self._monotonic = monotonic
        self._burst = burst
        self._refill_seconds = refill_seconds
        self._tokens = float(burst)
        self._seen_at = monotonic()

    def take(self) -> bool:
        """Takes a token, if there is one."""
        now = self._monotonic()
        refilled = self._tokens + (now - self._seen_at) / self._refill_seconds
        self._tokens, self._seen_at = min(self._burst, refilled), now
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True


class Memory:
    """The Events that this process has written, the newest of them."""

    def __init__(self) -> None:
        self._said: OrderedDict[tuple[str, str], Said] = OrderedDict()

    def find(self, reason: str, message: str) -> Said | None:
        """The Event of the same words, if it was written not too many Events ago."""
        return self._said.get((reason, message))

    def note(self, reason: str, message: str, said: Said) -> None:
        """Remembers an Event as it is in the cluster now."""
        self._said[reason, message] = said
        self._said.move_to_end((reason, message))
        while len(self._said) > _MAX_REMEMBERED:
            self._said.popitem(last=False)

    def forget(self, reason: str, message: str) -> None:
        """The cluster has it no more."""
        self._said.pop((reason, message), None)
