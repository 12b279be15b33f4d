"""The line of attempts: which checkpoints of a run count.

Two attempts never share a name, so a stalled old trainer that wakes up damages nothing; but what it
commits then must not be taken for the run's progress. So:

- The line ends at its head: the highest attempt that has a commit or a finished end.
- From there it runs back through `resumed_from`. Of the head all commits count; of each earlier
  attempt those up to the step that the next one resumed from.
- All other commits are void: ignored by everyone, and swept by the current attempt.

The outcome is that of the newest attempt, be it on the line or not: while a new attempt trains on
after a finished one (with more steps, say), the run is running.

A reader lists attempts (with their ends) first and checkpoints second. So where it saw an end, it
sees the commits before that end. A commit whose attempt it didn't see makes it list again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TypeVar

from tandem.checkpoints import names
from tandem.checkpoints.attempts import Attempt, AttemptEnd, Outcome
from tandem.checkpoints.names import CheckpointId
from tandem.checkpoints.objects import ObjectStore
from tandem.checkpoints.records import decode
from tandem.errors import StoreError

_AttemptRecord = TypeVar("_AttemptRecord", Attempt, AttemptEnd)


@dataclass(frozen=True)
class Line:
    """A run's state as far as attempts and checkpoints go.

    Attributes:
        attempts: all that were claimed, oldest first.
        ends: those that ended, by attempt number.
        head: the attempt that the line ends at; None while nothing is committed.
        checkpoints: those on the line, by step.
        void: committed, but off the line.
        retiring: about to be deleted (on the line or void).
        damaged: found damaged by a reader (on the line or void).
        uncommitted: data (or a quarantine) without a commit.
    """

    attempts: tuple[Attempt, ...]
    ends: Mapping[int, AttemptEnd]
    head: int | None
    checkpoints: tuple[CheckpointId, ...]
    void: tuple[CheckpointId, ...]
    retiring: frozenset[CheckpointId]
    damaged: frozenset[CheckpointId]
    uncommitted: frozenset[CheckpointId]

    @property
    def newest_attempt(self) -> Attempt | None:
        """The attempt of the highest number."""
        return self.attempts[-1] if self.attempts else None

    @property
    def end(self) -> AttemptEnd | None:
        """How the newest attempt ended; None while it runs (or was killed)."""
        return self.ends.get(self.attempts[-1].number) if self.attempts else None

    @property
    def outcome(self) -> Outcome | None:
        """How the newest attempt ended; None while it runs (or was killed), or none was claimed."""
        return self.end.outcome if self.end else None

    @property
    def newest(self) -> CheckpointId | None:
        """The newest checkpoint, damaged or not."""
        return self.checkpoints[-1] if self.checkpoints else None

    @property
    def readable(self) -> tuple[CheckpointId, ...]:
        """The checkpoints that are neither damaged nor about to go, by step."""
        closed = self.retiring | self.damaged
        return tuple(c for c in self.checkpoints if c not in closed)

    @property
    def newest_sound(self) -> CheckpointId | None:
        """What a trainer resumes from."""
        return self.readable[-1] if self.readable else None

    @property
    def final(self) -> CheckpointId | None:
        """The last checkpoint of a finished run."""
        return self.newest if self.outcome is Outcome.FINISHED else None


@dataclass(frozen=True)
class CheckpointListing:
    """What the names below `checkpoints/` say."""

    committed: frozenset[CheckpointId]
    retiring: frozenset[CheckpointId]
    damaged: frozenset[CheckpointId]
    with_data: frozenset[CheckpointId]


def checkpoint_listing(object_names: Collection[str]) -> CheckpointListing:
    """Sorts the names below `checkpoints/`; names that are not a run's are left out."""
    found = [parsed for name in object_names if (parsed := names.parse_checkpoint_object(name))]

    def with_suffix(suffix: str) -> frozenset[CheckpointId]:
        return frozenset(o.checkpoint for o in found if o.suffix == suffix)

    return CheckpointListing(
        committed=with_suffix(names.COMMIT_SUFFIX),
        retiring=with_suffix(names.INTENT_SUFFIX),
        damaged=with_suffix(names.DAMAGE_SUFFIX),
        with_data=frozenset(o.checkpoint for o in found if names.is_data_suffix(o.suffix)),
    )


def line_of(
    *,
    attempts: Mapping[int, Attempt],
    ends: Mapping[int, AttemptEnd],
    listing: CheckpointListing,
) -> Line:
    """Decides what is on the line, from everything that was listed."""
    head = _head(attempts, ends, listing.committed)
    on_line = _on_line(head, attempts, listing.committed)
    return Line(
        attempts=tuple(attempts[number] for number in sorted(attempts)),
        ends=ends,
        head=head,
        checkpoints=tuple(sorted(on_line)),
        void=tuple(sorted(listing.committed - on_line)),
        retiring=listing.retiring,
        damaged=listing.damaged,
        uncommitted=(listing.with_data | listing.damaged) - listing.committed,
    )


def _head(
    attempts: Mapping[int, Attempt],
    ends: Mapping[int, AttemptEnd],
    committed: Collection[CheckpointId],
) -> int | None:
    with_commit = {checkpoint.attempt for checkpoint in committed}
    finished = {number for number, end in ends.items() if end.outcome is Outcome.FINISHED}
    return max((with_commit | finished) & attempts.keys(), default=None)


def _on_line(
    head: int | None, attempts: Mapping[int, Attempt], committed: Collection[CheckpointId]
) -> frozenset[CheckpointId]:
    found: set[CheckpointId] = set()
    number, last_step = head, None
    while number is not None:
        found |= {
            c
            for c in committed
            if c.attempt == number and (last_step is None or c.step <= last_step)
        }
        resumed_from = attempts[number].resumed_from
        if resumed_from is None:
            break
        if resumed_from.attempt >= number or resumed_from.attempt not in attempts:
            raise StoreError(
                f"{names.attempt_name(number)} says that it resumed from {resumed_from}, which is "
                "of no earlier attempt"
            )
        number, last_step = resumed_from.attempt, resumed_from.step
    return frozenset(found)


class LineReader:
    """Reads the line again and again, each record of an attempt only once."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._attempts: dict[int, Attempt] = {}
        self._ends: dict[int, AttemptEnd] = {}

    def read(self) -> Line:
        """The line as it is now; a listing of attempts and one of checkpoints when nothing is new.

        Raises:
            StoreError: a record of an attempt is damaged, or a commit's attempt is missing.
        """
        unknown: frozenset[int] = frozenset()
        while True:
            self._read_new_attempts()
            listing = checkpoint_listing(self._store.list(names.CHECKPOINTS))
            unknown_before = unknown
            unknown = frozenset(c.attempt for c in listing.committed) - self._attempts.keys()
            if not unknown:
                return line_of(
                    attempts=dict(self._attempts), ends=dict(self._ends), listing=listing
                )
            if unknown & unknown_before:
                number = min(unknown & unknown_before)
                raise StoreError(f"{names.attempt_name(number)} is missing, but it has commits")

    def _read_new_attempts(self) -> None:
        for name in self._store.list(names.ATTEMPTS):
            parsed = names.parse_attempt_object(name)
            if parsed is None:
                continue
            if parsed.is_end and parsed.number not in self._ends:
                self._ends[parsed.number] = self._read(name, AttemptEnd, parsed.number)
            elif not parsed.is_end and parsed.number not in self._attempts:
                self._attempts[parsed.number] = self._read(name, Attempt, parsed.number)

    def _read(self, name: str, record_type: type[_AttemptRecord], number: int) -> _AttemptRecord:
        record = decode(self._store.get(name).data, record_type, name=name)
        if record.number != number:
            raise StoreError(f"{name} is damaged: it holds the record of attempt {record.number}")
        return record


def read_line(store: ObjectStore) -> Line:
    """The line as it is now."""
    return LineReader(store).read()
