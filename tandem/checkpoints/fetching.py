"""Reading a checkpoint: every byte is checked against the commit before anyone uses it.

Bytes that differ put the checkpoint into quarantine (`.damaged.json`): everyone skips it from then
on. An object that is not found means that the checkpoint was retired meanwhile, which a reader with
a lease never meets; only where the commit stands and no intent does, is a missing file damage.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, NamedTuple

from tandem.checkpoints import names, writing
from tandem.checkpoints.checksums import summary_of_file
from tandem.checkpoints.commits import Commit, CommittedFile, read_commit
from tandem.checkpoints.names import CheckpointId
from tandem.checkpoints.objects import ObjectStat, ObjectStore, nothing
from tandem.checkpoints.records import CheckpointField, Record, decode, encode
from tandem.checkpoints.surroundings import SYSTEM, Surroundings
from tandem.errors import CheckpointDamagedError, ObjectExistsError, ObjectNotFoundError


class Damage(Record):
    """A checkpoint's quarantine.

    Attributes:
        checkpoint: the checkpoint.
        file: the object that is not what it should be.
        expected: what the commit says of it; empty when the commit itself is damaged.
        found: what was found instead.
        found_by: the process that read it.
        found_at: wall clock, for people.
    """

    kind: ClassVar[str] = "damage"
    checkpoint: CheckpointField
    file: str
    expected: str
    found: str
    found_by: str
    found_at: str


class FetchedCheckpoint(NamedTuple):
    """A checkpoint whose bytes were verified: its commit, and the prefix to give to TensorFlow."""

    commit: Commit
    prefix: Path


class _Difference(NamedTuple):
    file: str
    expected: str
    found: str


def fetch_checkpoint(
    store: ObjectStore,
    checkpoint: CheckpointId,
    folder: Path,
    *,
    reader: str | None,
    on_piece: Callable[[], None] = nothing,
    surroundings: Surroundings = SYSTEM,
) -> FetchedCheckpoint:
    """Brings a checkpoint to this machine, verified.

    Args:
        store: the run's store.
        checkpoint: which one.
        folder: where its files go; unused when the store is a local folder, whose files are
            verified and read in place.
        reader: this process, named in a quarantine; None to leave the store as it is.
        on_piece: called from time to time, e.g. to renew a lease; what it raises ends the fetch.
        surroundings: clock, sleep, randomness.

    Raises:
        ObjectNotFoundError: it was retired, or never committed.
        CheckpointDamagedError: it is damaged (and in quarantine now, if there is a reader).
    """
    try:
        commit = read_commit(store, checkpoint)
    except CheckpointDamagedError as error:
        name = names.checkpoint_object(checkpoint, names.COMMIT_SUFFIX)
        difference = _Difference(name, "", str(error))
    else:
        found = _first_difference(store, commit, folder, on_piece=on_piece)
        if found is None:
            return FetchedCheckpoint(commit, _prefix(store, checkpoint, folder))
        difference = found
    if reader is not None:
        _quarantine(store, checkpoint, difference, reader=reader, surroundings=surroundings)
    raise CheckpointDamagedError(
        f"checkpoint {checkpoint} of {store.location} is damaged: {difference.file}: "
        f"{difference.found}"
        + (f", committed was {difference.expected}" * bool(difference.expected))
    )


def read_damage(store: ObjectStore, checkpoint: CheckpointId) -> Damage:
    """Why a checkpoint is in quarantine."""
    name = names.checkpoint_object(checkpoint, names.DAMAGE_SUFFIX)
    return decode(store.get(name).data, Damage, name=name)


def _quarantine(
    store: ObjectStore,
    checkpoint: CheckpointId,
    difference: _Difference,
    *,
    reader: str,
    surroundings: Surroundings,
) -> None:
    damage = Damage(
        nonce=surroundings.nonce(),
        checkpoint=checkpoint,
        file=difference.file,
        expected=difference.expected,
        found=difference.found,
        found_by=reader,
        found_at=surroundings.timestamp(),
    )
    name = names.checkpoint_object(checkpoint, names.DAMAGE_SUFFIX)
    try:
        writing.create(store, name, encode(damage), surroundings=surroundings)
    except ObjectExistsError:
        return  # another reader found it as well


def _first_difference(
    store: ObjectStore, commit: Commit, folder: Path, *, on_piece: Callable[[], None]
) -> _Difference | None:
    for file in commit.files:
        name = names.checkpoint_object(commit.checkpoint, file.suffix)
        try:
            stat = _bring(store, name, folder, on_piece=on_piece)
        except ObjectNotFoundError:
            _raise_if_retired(store, commit.checkpoint)
            return _Difference(name, _described(file), "the file is missing")
        if (stat.size, stat.crc32c) != (file.size, file.crc32c):
            return _Difference(name, _described(file), _described(stat))
    return None


def _bring(
    store: ObjectStore, name: str, folder: Path, *, on_piece: Callable[[], None]
) -> ObjectStat:
    path = store.local_path(name)
    if path is None:
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / Path(name).name
        target.unlink(missing_ok=True)  # of an earlier fetch that was interrupted
        return store.download(name, target, on_piece=on_piece)
    try:
        with path.open("rb") as file:
            summary = summary_of_file(file, on_bytes=lambda _: on_piece())
    except FileNotFoundError as error:
        raise ObjectNotFoundError(f"there is no {name}") from error
    return ObjectStat(name, summary.size, summary.crc32c, summary.content_hash)


def _raise_if_retired(store: ObjectStore, checkpoint: CheckpointId) -> None:
    listed = store.list(names.checkpoint_object(checkpoint, "."))
    is_committed = names.checkpoint_object(checkpoint, names.COMMIT_SUFFIX) in listed
    has_intent = names.checkpoint_object(checkpoint, names.INTENT_SUFFIX) in listed
    if has_intent or not is_committed:
        raise ObjectNotFoundError(f"checkpoint {checkpoint} was retired")


def _prefix(store: ObjectStore, checkpoint: CheckpointId, folder: Path) -> Path:
    index = store.local_path(names.checkpoint_object(checkpoint, ".index"))
    return folder / f"ckpt-{checkpoint}" if index is None else index.with_suffix("")


def _described(file: CommittedFile | ObjectStat) -> str:
    return f"{file.size} bytes, crc32c {file.crc32c:08x}"
