"""Clocks, sleep and randomness of the run store, as one argument."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone


def _utc_now() -> datetime:
    return datetime.now(timezone.utc)


def _nonce() -> str:
    return uuid.uuid4().hex


@dataclass(frozen=True)
class Surroundings:
    """What the run store takes from the machine it runs on.

    Attributes:
        monotonic: seconds that only grow; the one clock that decides anything, and only ever
            compared with itself.
        sleep: waits for some seconds.
        utc_now: wall clock, written into records for people and never compared.
        nonce: another short text at every call, in no other process either.
        random: evenly spread in [0, 1); only the jitter of pauses.
    """

    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    utc_now: Callable[[], datetime] = _utc_now
    nonce: Callable[[], str] = _nonce
    random: Callable[[], float] = random.random

    def timestamp(self) -> str:
        """Now, for people: `2026-01-31T12:00:00Z`."""
        return self.utc_now().strftime("%Y-%m-%dT%H:%M:%SZ")


SYSTEM = Surroundings()


def seconds_since_1970(timestamp: str) -> float:
    """What `Surroundings.timestamp` has written, for people and their charts."""
    return datetime.strptime(timestamp, "%Y-%m-%dT%H:%M:%S%z").timestamp()
