"""Pins: that a person wants a checkpoint kept, whatever the retention policy says.

- pin: put it, then look: the commit is gone, or an intent to retire is there, take it back.
- Whoever retires counts pins among what is held, looks again just before the intent, and after the
  intent leaves the data of a pinned checkpoint alone. (A pin that comes between that look and the
  intent keeps the data, but readers take no new lease on what has an intent.)
"""

from __future__ import annotations

import contextlib
from typing import ClassVar

from tandem.checkpoints import names, writing
from tandem.checkpoints.ledger import read_all
from tandem.checkpoints.names import CheckpointId
from tandem.checkpoints.objects import ObjectStore
from tandem.checkpoints.records import CheckpointField, Record, encode
from tandem.checkpoints.surroundings import SYSTEM, Surroundings
from tandem.errors import (
    GenerationMismatchError,
    ObjectExistsError,
    ObjectNotFoundError,
    RunConflictError,
)


class Pin(Record):
    """A person's wish that a checkpoint stays.

    Attributes:
        checkpoint: the checkpoint.
        reason: why, for people; may be empty.
        pinned_by: who, for people.
        pinned_at: wall clock, for people.
    """

    kind: ClassVar[str] = "pin"
    checkpoint: CheckpointField
    reason: str
    pinned_by: str
    pinned_at: str


def pin(
    store: ObjectStore,
    checkpoint: CheckpointId,
    *,
    reason: str,
    by: str,
    surroundings: Surroundings = SYSTEM,
) -> bool:
    """Pins a committed checkpoint; False when it was pinned before, whose reason stands.

    Raises:
        RunConflictError: it is being retired, or gone.
    """
    record = Pin(
        nonce=surroundings.nonce(),
        checkpoint=checkpoint,
        reason=reason,
        pinned_by=by,
        pinned_at=surroundings.timestamp(),
    )
    name = names.pin_name(checkpoint)
    try:
        stat = writing.create(store, name, encode(record), surroundings=surroundings)
    except ObjectExistsError:
        _refuse_unless_it_stays(store, checkpoint)
        return False
    try:
        _refuse_unless_it_stays(store, checkpoint)
    except RunConflictError:
        with contextlib.suppress(ObjectNotFoundError, GenerationMismatchError):
            store.delete(name, generation=stat.generation)
        raise
    return True


def unpin(store: ObjectStore, checkpoint: CheckpointId) -> bool:
    """Takes a pin away; False when there is none."""
    name = names.pin_name(checkpoint)
    try:
        store.delete(name, generation=store.generation(name))
    except ObjectNotFoundError:
        return False
    return True


def is_pinned(store: ObjectStore, checkpoint: CheckpointId) -> bool:
    """Whether a checkpoint is pinned, by a pin that may be damaged."""
    name = names.pin_name(checkpoint)
    return name in store.list(name)


def pinned_checkpoints(store: ObjectStore) -> frozenset[CheckpointId]:
    """The pinned checkpoints, from one listing."""
    return frozenset(c for name in store.list(names.PINS) if (c := names.parse_pin(name)))


def read_pins(store: ObjectStore) -> dict[CheckpointId, Pin]:
    """The pins by checkpoint; a damaged one is left out, with a log line, but it still counts."""
    found = {name: c for name in store.list(names.PINS) if (c := names.parse_pin(name))}
    return {found[name]: record for name, record in read_all(store, found, Pin).items()}


def _refuse_unless_it_stays(store: ObjectStore, checkpoint: CheckpointId) -> None:
    listed = store.list(names.checkpoint_object(checkpoint, "."))
    if names.checkpoint_object(checkpoint, names.INTENT_SUFFIX) in listed:
        raise RunConflictError(
            f"checkpoint {checkpoint} of {store.location} is being retired: too late to pin it"
        )
    if names.checkpoint_object(checkpoint, names.COMMIT_SUFFIX) not in listed:
        raise RunConflictError(f"checkpoint {checkpoint} of {store.location} is gone")
