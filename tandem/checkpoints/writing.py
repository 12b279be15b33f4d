"""Puts whose answer may be unclear.

A create or replace that fails with StoreUnavailableError may have taken effect, and one that meets
its own earlier effect fails with ObjectExistsError. So before anything else the object is read back
and compared: a record has a nonce, so equal bytes are ours. Where it is absent (or, for a replace,
unchanged), the put is repeated after a pause, up to a deadline. Before a create is repeated,
`before_again` runs: for a commit it makes sure that no newer attempt exists, since a late
repetition could bring back a checkpoint that the newer one has retired.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tandem.checkpoints.checksums import Summary, summary_of_file
from tandem.checkpoints.objects import ObjectStat, ObjectStore, StoredObject, ignoring, nothing
from tandem.checkpoints.retrying import DEFAULT_BACKOFF
from tandem.checkpoints.surroundings import SYSTEM, Surroundings
from tandem.errors import (
    GenerationMismatchError,
    ObjectExistsError,
    ObjectNotFoundError,
    StoreUnavailableError,
)


def create(
    store: ObjectStore,
    name: str,
    data: bytes,
    *,
    before_again: Callable[[], None] = nothing,
    surroundings: Surroundings = SYSTEM,
) -> ObjectStat:
    """Creates an object; ObjectExistsError means that another's is there."""
    pauses = DEFAULT_BACKOFF.pauses(surroundings)
    while True:
        try:
            return store.create(name, data)
        except (ObjectExistsError, StoreUnavailableError) as error:
            standing = find(store, name)
            if standing is not None and standing.data == data:
                return standing.stat
            if standing is not None or isinstance(error, ObjectExistsError):
                raise ObjectExistsError(f"{name} exists already") from error
            pause = next(pauses, None)
            if pause is None:
                raise
        surroundings.sleep(pause)
        before_again()


def create_from_file(
    store: ObjectStore,
    name: str,
    path: Path,
    *,
    on_bytes: Callable[[int], None] = ignoring,
    surroundings: Surroundings = SYSTEM,
) -> ObjectStat:
    """Creates an object from a file; the store says what it then has.

    Raises:
        ObjectExistsError: an object of other content is there.
        CheckpointDamagedError: the store has other bytes than it was given.
    """
    expected: Summary | None = None
    pauses = DEFAULT_BACKOFF.pauses(surroundings)
    while True:
        try:
            return store.create_from_file(name, path, on_bytes=on_bytes)
        except (ObjectExistsError, StoreUnavailableError) as error:
            expected = expected or _summary_of(path)
            standing = _find_stat(store, name)
            if standing is not None and _is_of(standing, expected):
                return standing
            if standing is not None or isinstance(error, ObjectExistsError):
                raise ObjectExistsError(f"{name} exists already, with other content") from error
            pause = next(pauses, None)
            if pause is None:
                raise
        surroundings.sleep(pause)


def replace(
    store: ObjectStore,
    name: str,
    data: bytes,
    *,
    generation: str | None,
    surroundings: Surroundings = SYSTEM,
) -> ObjectStat:
    """Replaces an object; GenerationMismatchError means that another's is there, or none."""
    pauses = DEFAULT_BACKOFF.pauses(surroundings)
    while True:
        try:
            return store.replace(name, data, generation=generation)
        except (GenerationMismatchError, StoreUnavailableError) as error:
            standing = find(store, name)
            if standing is not None and standing.data == data:
                return standing.stat
            found = standing.stat.generation if standing else None
            if found != generation or isinstance(error, GenerationMismatchError):
                raise GenerationMismatchError(f"{name} is not what it was any more") from error
            pause = next(pauses, None)
            if pause is None:
                raise
        surroundings.sleep(pause)


def find(store: ObjectStore, name: str) -> StoredObject | None:
    """The object, or None when there is none."""
    try:
        return store.get(name)
    except ObjectNotFoundError:
        return None


def _summary_of(path: Path) -> Summary:
    with path.open("rb") as file:
        return summary_of_file(file)


def _find_stat(store: ObjectStore, name: str) -> ObjectStat | None:
    try:
        return store.stat(name)
    except ObjectNotFoundError:
        return None


def _is_of(stat: ObjectStat, expected: Summary) -> bool:
    return (stat.size, stat.crc32c) == (expected.size, expected.crc32c)
