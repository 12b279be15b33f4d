"""The ledger: what became of each checkpoint in each evaluation set.

Every committed checkpoint of the line ends with exactly one entry per evaluation set: scored,
skipped (by the policy, or retired first) or failed (after three tries, or damaged). An entry is
created once and never changed; whoever comes second learns that the first one stands.

TensorBoard, Prometheus and `best/` are projections of the ledger.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import ClassVar, NamedTuple

from pydantic import Field

from tandem.checkpoints import names, writing
from tandem.checkpoints.names import CheckpointId, EvalSet
from tandem.checkpoints.objects import ObjectStore
from tandem.checkpoints.records import CheckpointField, Record, RecordType, decode, encode
from tandem.checkpoints.surroundings import SYSTEM, Surroundings
from tandem.errors import (
    ObjectExistsError,
    StoreError,
    StoreUnavailableError,
)

_logger = logging.getLogger(__name__)


class EntryOutcome(str, Enum):
    """What became of a checkpoint in an evaluation set."""

    SCORED = "scored"
    SKIPPED = "skipped"
    FAILED = "failed"

    def __str__(self) -> str:
        return self.value


class LedgerEntry(Record):
    """The one entry of a checkpoint and an evaluation set.

    Attributes:
        checkpoint: the checkpoint.
        eval_set: name of the evaluation set; empty if it has none.
        set_digest: digest of what the set consists of; numbers of other digests don't compare.
        outcome: scored, skipped or failed.
        metrics: by their names in TensorBoard; None where a metric has no value (no ground truth).
        images_expected: how many images the set has, where that is known.
        images_read: how many were read.
        images_scored: how many went into the metrics.
        reasons: why skipped, or why each try failed.
        durations_seconds: by part of the work, and of the whole under `total`.
        config_digest: configuration of the checkpoint's training, from its commit.
        samples_seen: from the checkpoint's commit.
        training_seconds: from the checkpoint's commit.
        unverified: what could not be checked of a checkpoint that has no commit.
        recorded_by: the process.
        recorded_at: wall clock, for people.
    """

    kind: ClassVar[str] = "evaluation"
    checkpoint: CheckpointField
    eval_set: str
    set_digest: str
    outcome: EntryOutcome
    metrics: dict[str, float | None] = Field(default_factory=dict)
    images_expected: int | None = None
    images_read: int | None = None
    images_scored: int | None = None
    reasons: tuple[str, ...] = ()
    durations_seconds: dict[str, float] = Field(default_factory=dict)
    config_digest: str = ""
    samples_seen: int | None = None
    training_seconds: float | None = None
    unverified: tuple[str, ...] = ()
    recorded_by: str
    recorded_at: str

    @property
    def total_seconds(self) -> float | None:
        """That the evaluation took from the restoring to the record; None where none was made."""
        return self.durations_seconds.get("total")


def set_digest(facts: Mapping[str, object]) -> str:
    """A short digest of what an evaluation set consists of (anything that JSON can hold)."""
    text = json.dumps(facts, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def record_entry(
    store: ObjectStore, entry: LedgerEntry, *, surroundings: Surroundings = SYSTEM
) -> bool:
    """Records the entry; False when there is one already, which stands."""
    eval_set = EvalSet(entry.eval_set, entry.set_digest)
    name = names.entry_name(entry.checkpoint, eval_set)
    try:
        writing.create(store, name, encode(entry), surroundings=surroundings)
    except ObjectExistsError:
        return False
    return True


class LedgerView(NamedTuple):
    """An evaluation set's ledger: its entries by checkpoint, and which checkpoints have one.

    A damaged entry stands, although nobody can read it: its checkpoint counts as recorded.
    """

    entries: tuple[LedgerEntry, ...]
    recorded: frozenset[CheckpointId]


class LedgerReader:
    """Reads the ledger again and again, each entry only once."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._entries: dict[str, LedgerEntry | None] = {}

    def look(self, eval_set: EvalSet) -> LedgerView:
        """An evaluation set's ledger as it is now, from one listing."""
        listed = self._store.list(names.entries_of(eval_set.name))
        wanted = {
            name: parsed.checkpoint
            for name in listed
            if (parsed := names.parse_entry(name)) and _is_entry(name, digest=eval_set.digest)
        }
        new = [name for name in wanted if name not in self._entries]
        found = read_all(self._store, new, LedgerEntry)
        self._entries |= {name: found.get(name) for name in new}
        entries = [entry for name in wanted if (entry := self._entries[name])]
        return LedgerView(
            tuple(sorted(entries, key=lambda entry: entry.checkpoint)), frozenset(wanted.values())
        )

    def read(self, eval_set: EvalSet) -> tuple[LedgerEntry, ...]:
        """An evaluation set's entries by checkpoint; a damaged one is left out, with a log line."""
        return self.look(eval_set).entries


def read_entry(
    store: ObjectStore, checkpoint: CheckpointId, eval_set: EvalSet
) -> LedgerEntry | None:
    """The entry of a checkpoint and an evaluation set, if there is one."""
    name = names.entry_name(checkpoint, eval_set)
    found = writing.find(store, name)
    return decode(found.data, LedgerEntry, name=name) if found else None


def recorded_checkpoints(store: ObjectStore, eval_set: EvalSet) -> frozenset[CheckpointId]:
    """The checkpoints that have an entry, from one listing."""
    parsed = map(names.parse_entry, store.list(names.entries_of(eval_set.name)))
    return frozenset(
        e.checkpoint for e in parsed if e and e.try_number is None and e.digest == eval_set.digest
    )


def ledger_sets(store: ObjectStore) -> tuple[EvalSet, ...]:
    """The evaluation sets that have entries; a damaged entry doesn't tell."""
    return tuple(sorted({EvalSet(e.eval_set, e.set_digest) for e in read_ledger(store)}))


def read_entries(store: ObjectStore, eval_set: EvalSet) -> tuple[LedgerEntry, ...]:
    """An evaluation set's entries by checkpoint; a damaged one is left out, with a log line."""
    return LedgerReader(store).read(eval_set)


def read_ledger(store: ObjectStore) -> tuple[LedgerEntry, ...]:
    """All entries of all sets; a damaged one is left out, with a log line."""
    listed = filter(_is_entry, store.list(names.EVALUATIONS))
    return tuple(read_all(store, listed, LedgerEntry).values())


def _is_entry(name: str, *, digest: str | None = None) -> bool:
    parsed = names.parse_entry(name)
    if parsed is None or parsed.try_number is not None:
        return False
    return digest is None or parsed.digest == digest


def read_all(
    store: ObjectStore, object_names: Iterable[str], record_type: type[RecordType]
) -> dict[str, RecordType]:
    """Reads records by name; one that is damaged or gone is left out, with a log line."""
    records = {}
    for name in object_names:
        try:
            records[name] = decode(store.get(name).data, record_type, name=name)
        except StoreUnavailableError:
            raise
        except StoreError as error:
            _logger.error("left out of the ledger: %s", error)
    return records
