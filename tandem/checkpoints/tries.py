"""Tries of an evaluation, each recorded before it begins.

So a process that is killed each time counts too, and a checkpoint that nobody can evaluate ends as
failed instead of holding up the others for ever.
"""

from __future__ import annotations

from typing import ClassVar

from tandem.checkpoints import names, writing
from tandem.checkpoints.ledger import read_all
from tandem.checkpoints.names import CheckpointId, EvalSet
from tandem.checkpoints.objects import ObjectStore
from tandem.checkpoints.records import CheckpointField, Record, encode
from tandem.checkpoints.surroundings import SYSTEM, Surroundings
from tandem.errors import ObjectExistsError, ObjectNotFoundError

MAX_TRIES = 3


class Try(Record):
    """A try that began.

    Attributes:
        checkpoint: the checkpoint.
        eval_set: name of the evaluation set.
        set_digest: digest of the set.
        number: 1, 2, ...
        last_failure: why the try before failed, where that is known; a killed one left no word.
        begun_by: the process.
        begun_at: wall clock, for people.
    """

    kind: ClassVar[str] = "try"
    checkpoint: CheckpointField
    eval_set: str
    set_digest: str
    number: int
    last_failure: str
    begun_by: str
    begun_at: str


def record_try(
    store: ObjectStore,
    checkpoint: CheckpointId,
    eval_set: EvalSet,
    *,
    recorder: str,
    last_failure: str = "",
    surroundings: Surroundings = SYSTEM,
) -> int | None:
    """Records that a try begins, by the holder of the lease.

    Returns:
        The try's number; None when `MAX_TRIES` tries have begun before, so the entry is failed.
    """
    for number in range(len(_try_names(store, checkpoint, eval_set)) + 1, MAX_TRIES + 1):
        record = Try(
            nonce=surroundings.nonce(),
            checkpoint=checkpoint,
            eval_set=eval_set.name,
            set_digest=eval_set.digest,
            number=number,
            last_failure=last_failure,
            begun_by=recorder,
            begun_at=surroundings.timestamp(),
        )
        name = names.try_name(checkpoint, eval_set, number)
        try:
            writing.create(store, name, encode(record), surroundings=surroundings)
        except ObjectExistsError:
            continue
        return number
    return None


def withdraw_try(
    store: ObjectStore, checkpoint: CheckpointId, eval_set: EvalSet, number: int
) -> None:
    """Takes a try back that was stopped on purpose, by the holder of the lease that began it.

    It says nothing about the checkpoint, so it must not count against it.
    """
    name = names.try_name(checkpoint, eval_set, number)
    try:
        store.delete(name, generation=store.generation(name))
    except ObjectNotFoundError:
        return


def read_tries(store: ObjectStore, checkpoint: CheckpointId, eval_set: EvalSet) -> tuple[Try, ...]:
    """The tries that began, oldest first."""
    found = read_all(store, _try_names(store, checkpoint, eval_set), Try)
    return tuple(sorted(found.values(), key=lambda record: record.number))


def _try_names(store: ObjectStore, checkpoint: CheckpointId, eval_set: EvalSet) -> list[str]:
    prefix = names.entry_name(checkpoint, eval_set).removesuffix("json")
    return [n for n in store.list(prefix) if (e := names.parse_entry(n)) and e.try_number]
