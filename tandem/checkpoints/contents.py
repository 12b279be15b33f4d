"""Which record belongs to a name, and which name to a record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tandem.checkpoints import names
from tandem.checkpoints.attempts import Attempt, AttemptEnd
from tandem.checkpoints.bests import Best
from tandem.checkpoints.commits import Commit
from tandem.checkpoints.fetching import Damage
from tandem.checkpoints.heartbeats import HeartbeatRecord
from tandem.checkpoints.leases import LeaseRecord
from tandem.checkpoints.ledger import LedgerEntry
from tandem.checkpoints.names import EvalSet
from tandem.checkpoints.pins import Pin
from tandem.checkpoints.records import Record
from tandem.checkpoints.retiring import Intent
from tandem.checkpoints.runs import Run
from tandem.checkpoints.tries import Try

_BY_SUFFIX: dict[str, type[Record]] = {
    names.COMMIT_SUFFIX: Commit,
    names.INTENT_SUFFIX: Intent,
    names.DAMAGE_SUFFIX: Damage,
}

_NAME_OF: dict[type[Record], Callable[[Any], str]] = {
    Run: lambda _: names.RUN,
    Attempt: lambda record: names.attempt_name(record.number),
    AttemptEnd: lambda record: names.end_name(record.number),
    Commit: lambda r: names.checkpoint_object(r.checkpoint, names.COMMIT_SUFFIX),
    Intent: lambda r: names.checkpoint_object(r.checkpoint, names.INTENT_SUFFIX),
    Damage: lambda r: names.checkpoint_object(r.checkpoint, names.DAMAGE_SUFFIX),
    LeaseRecord: lambda record: names.lease_name(record.checkpoint, record.purpose),
    Pin: lambda record: names.pin_name(record.checkpoint),
    LedgerEntry: lambda r: names.entry_name(r.checkpoint, EvalSet(r.eval_set, r.set_digest)),
    Try: lambda r: names.try_name(r.checkpoint, EvalSet(r.eval_set, r.set_digest), r.number),
    Best: lambda record: names.best_name(record.eval_set),
    HeartbeatRecord: lambda record: names.heartbeat_name(record.process),
}


def record_type_of(name: str) -> type[Record] | None:
    """The record that an object of this name holds; None for data and for names of others."""
    if name == names.RUN:
        return Run
    if (attempt := names.parse_attempt_object(name)) is not None:
        return AttemptEnd if attempt.is_end else Attempt
    if (part := names.parse_checkpoint_object(name)) is not None:
        return _BY_SUFFIX.get(part.suffix)
    if (entry := names.parse_entry(name)) is not None:
        return LedgerEntry if entry.try_number is None else Try
    if names.parse_lease(name) is not None:
        return LeaseRecord
    if names.parse_pin(name) is not None:
        return Pin
    folder, _, file = name.partition("/")
    by_folder: dict[str, type[Record]] = {"best": Best, "heartbeats": HeartbeatRecord}
    return by_folder.get(folder) if file.endswith(".json") and "/" not in file else None


def name_of(record: Record) -> str:
    """The name that a record's content calls for."""
    return _NAME_OF[type(record)](record)
