"""Heartbeats: which phase a process is in, and whether it lives.

A process replaces its own object again and again. An observer never looks at the time in it: it
measures, on its own monotonic clock, for how long the object's generation has not changed. So a
process is taken for alive until it was *seen* silent, however wrong any clock is.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from typing import ClassVar, NamedTuple

from tandem.checkpoints import names, writing
from tandem.checkpoints.objects import ObjectStore
from tandem.checkpoints.records import Record, decode, encode
from tandem.checkpoints.surroundings import SYSTEM, Surroundings
from tandem.checkpoints.watching import GenerationWatch
from tandem.errors import GenerationMismatchError, StoreError

_logger = logging.getLogger(__name__)

TRAINER = "trainer"
Fact = str | int | float | bool | None


def evaluator_process(name: str) -> str:
    """How an evaluator's heartbeat is called."""
    return f"evaluator-{name}"


def watchdog_process(process: str) -> str:
    """How the record is called that a process's watchdog writes when its loop hangs."""
    return f"watchdog-{process}"


class HeartbeatRecord(Record):
    """One beat.

    Attributes:
        process: `trainer` or `evaluator-NAME`; `watchdog-` before it where its loop hangs.
        attempt: the trainer's attempt; None for evaluators.
        phase: what the process is doing.
        step: the step it is at, or that it evaluates.
        phase_since: when the phase began, wall clock, for people.
        phase_seconds: for how long it had lasted at this beat.
        facts: what else is worth knowing; what isn't known is left out. `beat_at` is the writer's
            wall clock, by which a wrong one is found and nothing else is decided.
    """

    kind: ClassVar[str] = "heartbeat"
    process: str
    attempt: int | None
    phase: str
    step: int | None
    phase_since: str
    phase_seconds: float
    facts: dict[str, Fact]


class Heartbeat:
    """Writes a process's heartbeat. A trainer's never overwrites that of a newer attempt."""

    def __init__(
        self,
        store: ObjectStore,
        process: str,
        *,
        attempt: int | None = None,
        more_facts: Callable[[], Mapping[str, Fact]] = dict,
        surroundings: Surroundings = SYSTEM,
    ) -> None:
        """Writes nothing yet.

        Args:
            store: the run's.
            process: whose heartbeat it is.
            attempt: the trainer's.
            more_facts: asked at each beat for what every one says.
            surroundings: clocks, randomness.
        """
        self._store = store
        self._process = process
        self._attempt = attempt
        self._more_facts = more_facts
        self._surroundings = surroundings
        self._name = names.heartbeat_name(process)
        self._generation: str | None = None
        self._phase: str | None = None
        self._phase_began = 0.0
        self._phase_since = ""

    def beat(self, phase: str, step: int | None = None, **facts: Fact) -> bool:
        """Says that the process lives, and what it is doing.

        Returns:
            Whether the beat was written; False when a newer attempt's heartbeat stands there.
        """
        data = encode(self._record(phase, step, facts))
        try:
            self._put(data)
        except GenerationMismatchError:  # the first beat of this process, mostly
            standing = writing.find(self._store, self._name)
            if standing is not None and self._is_newer(standing.data):
                return False
            self._generation = standing.stat.generation if standing else None
            try:
                self._put(data)
            except GenerationMismatchError:
                return False  # another process of this name beats as well: it is heard
        return True

    def _put(self, data: bytes) -> None:
        stat = writing.replace(
            self._store,
            self._name,
            data,
            generation=self._generation,
            surroundings=self._surroundings,
        )
        self._generation = stat.generation

    def _is_newer(self, data: bytes) -> bool:
        if self._attempt is None:
            return False
        standing = _decoded(data, name=self._name)
        if standing is None or standing.attempt is None:
            return False
        return standing.attempt > self._attempt

    def _record(self, phase: str, step: int | None, facts: dict[str, Fact]) -> HeartbeatRecord:
        now = self._surroundings.monotonic()
        if phase != self._phase:
            self._phase, self._phase_began = phase, now
            self._phase_since = self._surroundings.timestamp()
        return HeartbeatRecord(
            nonce=self._surroundings.nonce(),
            process=self._process,
            attempt=self._attempt,
            phase=phase,
            step=step,
            phase_since=self._phase_since,
            phase_seconds=round(now - self._phase_began, 3),
            facts=_known(
                {**facts, **self._more_facts(), "beat_at": self._surroundings.timestamp()}
            ),
        )


def _known(facts: Mapping[str, Fact]) -> dict[str, Fact]:
    """The facts that have a value which JSON can hold."""
    return {
        name: value
        for name, value in facts.items()
        if value is not None and not (isinstance(value, float) and not math.isfinite(value))
    }


class HeartbeatView(NamedTuple):
    """What an observer knows of a process.

    Attributes:
        heartbeat: the last beat; None when the process never beat.
        unchanged_seconds: for how long nothing was heard, as far as this observer saw.
        is_fresh: whether there is a beat and it isn't stale.
        has_changed: whether this observer has seen it beat.
    """

    heartbeat: HeartbeatRecord | None
    unchanged_seconds: float
    is_fresh: bool
    has_changed: bool


class HeartbeatWatcher:
    """Says whether a process lives."""

    def __init__(
        self,
        store: ObjectStore,
        process: str,
        *,
        stale_seconds: float = 60.0,
        surroundings: Surroundings = SYSTEM,
    ) -> None:
        self._name = names.heartbeat_name(process)
        self._stale_seconds = stale_seconds
        self._watch = GenerationWatch(store, surroundings=surroundings)

    def look(self) -> HeartbeatView:
        """Reads the heartbeat once."""
        seen = self._watch.look(self._name)
        beat = None
        if seen.data is not None:
            beat = _decoded(seen.data, name=self._name)
        is_fresh = beat is not None and seen.unchanged_seconds < self._stale_seconds
        return HeartbeatView(beat, seen.unchanged_seconds, is_fresh, seen.has_changed)


def read_heartbeat(store: ObjectStore, process: str) -> HeartbeatRecord | None:
    """The last beat of a process; None when it never beat, or when the beat is damaged."""
    name = names.heartbeat_name(process)
    stored = writing.find(store, name)
    return _decoded(stored.data, name=name) if stored is not None else None


def read_heartbeats(store: ObjectStore) -> dict[str, HeartbeatRecord]:
    """The last beat of every process, by process."""
    found = {}
    for name in store.list(names.HEARTBEATS):
        stored = writing.find(store, name)
        if stored is not None:
            beat = _decoded(stored.data, name=name)
            if beat is not None:
                found[beat.process] = beat
    return found


def _decoded(data: bytes, *, name: str) -> HeartbeatRecord | None:
    """A beat; None when it is damaged, as the next one overwrites it."""
    try:
        return decode(data, HeartbeatRecord, name=name)
    except StoreError as error:
        _logger.warning("%s", error)
        return None
