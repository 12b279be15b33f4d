"""The story of a step's checkpoints, from the records that they left. Reads only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from services.ctl.store.quantities import size_text
from tandem.checkpoints import names
from tandem.checkpoints.commits import Commit
from tandem.checkpoints.fetching import Damage
from tandem.checkpoints.leases import LeaseRecord
from tandem.checkpoints.ledger import EntryOutcome, LedgerEntry, read_all
from tandem.checkpoints.lines import Line, read_line
from tandem.checkpoints.names import CheckpointId
from tandem.checkpoints.objects import ObjectStore
from tandem.checkpoints.pins import Pin
from tandem.checkpoints.policies import MAIN_METRIC
from tandem.checkpoints.records import RecordType
from tandem.checkpoints.tries import Try
from tandem.status.words import one_line


@dataclass(frozen=True)
class StoryEvent:
    """Something that happened to a checkpoint.

    Attributes:
        at: seconds since 1970, by the store's clock.
        what: a word for it.
        text: for people.
    """

    at: float
    what: str
    text: str


@dataclass(frozen=True)
class Story:
    """What became of a checkpoint.

    Attributes:
        checkpoint: its id.
        state: what it is now.
        events: in the order of time.
    """

    checkpoint: CheckpointId
    state: str
    events: tuple[StoryEvent, ...]


def stories_of(store: ObjectStore, step: int) -> list[Story]:
    """The stories of all checkpoints of a step, by attempt; none where nothing is known."""
    times = store.list_times("")
    line = read_line(store)
    return [
        _Teller(store, line, times, checkpoint).story()
        for checkpoint in sorted({c for c in map(_checkpoint_of, times) if c and c.step == step})
    ]


def _checkpoint_of(name: str) -> CheckpointId | None:
    parsed = names.parse_checkpoint_object(name)
    if parsed is not None:
        return parsed.checkpoint
    entry = names.parse_entry(name)
    return entry.checkpoint if entry else names.parse_lease(name) or names.parse_pin(name)


class _Teller:
    def __init__(
        self, store: ObjectStore, line: Line, times: dict[str, float], checkpoint: CheckpointId
    ) -> None:
        self._store = store
        self._line = line
        self._times = {n: at for n, at in times.items() if _checkpoint_of(n) == checkpoint}
        self._checkpoint = checkpoint

    def story(self) -> Story:
        events = [*self._saved(), *self._read(), *self._evaluated(), *self._gone()]
        order = sorted(events, key=lambda event: event.at)
        return Story(self._checkpoint, self._state(), tuple(order))

    def _saved(self) -> Iterator[StoryEvent]:
        for name, at in self._times.items():
            parsed = names.parse_checkpoint_object(name)
            if parsed is not None and parsed.suffix == ".index":
                yield StoryEvent(at, "saved", "its files are in the store")
        name = names.checkpoint_object(self._checkpoint, names.COMMIT_SUFFIX)
        for at, commit in self._records(name, Commit):
            yield StoryEvent(
                at,
                "committed",
                f"{size_text(commit.size)}, {commit.samples_seen:,} images seen, "
                f"{commit.training_seconds:.0f} s of training",
            )

    def _read(self) -> Iterator[StoryEvent]:
        for name in self._times:
            if names.parse_lease(name):
                for at, lease in self._records(name, LeaseRecord):
                    yield StoryEvent(at, "leased", f"for {lease.purpose}, by {lease.holder}")
            elif names.parse_pin(name):
                for at, pin in self._records(name, Pin):
                    yield StoryEvent(at, "pinned", _pin_text(pin))
        name = names.checkpoint_object(self._checkpoint, names.DAMAGE_SUFFIX)
        for at, damage in self._records(name, Damage):
            expected = f"; committed was {damage.expected}" if damage.expected else ""
            yield StoryEvent(
                at, "damaged", f"{damage.file}: {damage.found}{expected}, by {damage.found_by}"
            )

    def _evaluated(self) -> Iterator[StoryEvent]:
        for name in self._times:
            parsed = names.parse_entry(name)
            if parsed is None:
                continue
            if parsed.try_number is not None:
                for at, tried in self._records(name, Try):
                    yield StoryEvent(at, "tried", _try_text(tried))
            else:
                for at, entry in self._records(name, LedgerEntry):
                    yield StoryEvent(at, str(entry.outcome), _entry_text(entry))

    def _gone(self) -> Iterator[StoryEvent]:
        name = names.checkpoint_object(self._checkpoint, names.INTENT_SUFFIX)
        if name in self._times:
            yield StoryEvent(self._times[name], "retiring", "the trainer is about to delete it")

    def _state(self) -> str:
        checkpoint, line = self._checkpoint, self._line
        if checkpoint in line.damaged:
            return "damaged, in quarantine"
        if checkpoint in line.void:
            return "void: an attempt wrote it that the run did not go on from"
        if checkpoint in line.retiring:
            return "about to be deleted"
        if checkpoint in line.checkpoints:
            return "the newest" if checkpoint == line.newest else "on disk"
        if checkpoint in line.uncommitted:
            return "not committed: data without a commit, which nobody reads"
        return "deleted: the retention policy did not keep it"

    def _records(self, name: str, kind: type[RecordType]) -> Iterator[tuple[float, RecordType]]:
        if name in self._times:
            for record in read_all(self._store, [name], kind).values():
                yield self._times[name], record


def _pin_text(pin: Pin) -> str:
    return one_line(f"{pin.reason or 'no reason given'}")


def _try_text(tried: Try) -> str:
    before = f"; before: {one_line(tried.last_failure)}" if tried.last_failure else ""
    return f"try {tried.number} on {tried.eval_set or 'eval'}, by {tried.begun_by}{before}"


def _entry_text(entry: LedgerEntry) -> str:
    name = entry.eval_set or "eval"
    if entry.outcome is not EntryOutcome.SCORED:
        return f"{name}: {one_line('; '.join(entry.reasons))}"
    value = entry.metrics.get(MAIN_METRIC)
    metric = "no ground truth" if value is None else f"AP {value:.3f}"
    took = f" in {entry.total_seconds:.1f} s" if entry.total_seconds is not None else ""
    return f"{name}: {metric}, {entry.images_scored} images{took}"
