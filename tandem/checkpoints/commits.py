"""Committing a checkpoint.

1. Put TensorFlow's files, each under a name that only this attempt uses, and compare the size and
   crc32c that the store has with those of the file.
2. List attempts: a newer one, stop.
3. Put the commit, create-only: from here on the checkpoint exists. When the answer is unclear, read
   back; only if the commit is absent, list attempts again (a newer one, stop) and put it once more.
   Without that a late repetition could bring back a checkpoint that a newer attempt has retired.

A crash before 3 leaves data without a commit, which nobody reads and `tandem.checkpoints.retiring`
removes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from tandem.checkpoints import names, writing
from tandem.checkpoints.attempts import Attempt, stop_if_superseded
from tandem.checkpoints.names import CheckpointId
from tandem.checkpoints.objects import ObjectStat, ObjectStore, ignoring, nothing
from tandem.checkpoints.records import CheckpointField, Facts, Record, decode, encode
from tandem.checkpoints.surroundings import SYSTEM, Surroundings
from tandem.errors import CheckpointDamagedError, StoreError


class CommittedFile(Facts):
    """A file of a checkpoint: its suffix (`.index`), bytes, crc32c and generation."""

    suffix: str
    size: int
    crc32c: int
    generation: str


class Commit(Record):
    """What makes a checkpoint exist.

    Attributes:
        checkpoint: its step and attempt.
        files: all its files.
        config_digest: digest of the configuration that it was trained with.
        samples_seen: training examples up to here, over all attempts of the line.
        training_seconds: time spent training up to here, over all attempts of the line.
        committed_at: wall clock, for people.
    """

    kind: ClassVar[str] = "commit"
    checkpoint: CheckpointField
    files: tuple[CommittedFile, ...]
    config_digest: str
    samples_seen: int
    training_seconds: float
    committed_at: str

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)


def commit_checkpoint(
    store: ObjectStore,
    attempt: Attempt,
    *,
    step: int,
    local_prefix: Path,
    config_digest: str,
    samples_seen: int,
    training_seconds: float,
    on_bytes: Callable[[int], None] = ignoring,
    on_uploaded: Callable[[], None] = nothing,
    surroundings: Surroundings = SYSTEM,
) -> Commit:
    """Uploads and commits the checkpoint that TensorFlow wrote at a local prefix.

    Args:
        store: the run's store.
        attempt: the trainer's attempt.
        step: the step that was trained last.
        local_prefix: `FOLDER/NAME` such that `NAME.index` and `NAME.data-...` lie in FOLDER. The
            caller may remove these files afterwards but must not write to them.
        config_digest: digest of the configuration.
        samples_seen: training examples so far, over all attempts.
        training_seconds: time spent training so far, over all attempts.
        on_bytes: told the size of each piece of data before it goes; what it raises ends this.
        on_uploaded: told once all data are there, before the commit is.
        surroundings: clock, sleep, randomness.

    Raises:
        AttemptSupersededError: a newer attempt exists; nothing was committed.
    """
    checkpoint = CheckpointId(step, attempt.number)
    files = [
        _put_file(store, checkpoint, suffix, path, on_bytes=on_bytes, surroundings=surroundings)
        for suffix, path in sorted(tensorflow_files(local_prefix).items())
    ]
    on_uploaded()
    commit = Commit(
        nonce=surroundings.nonce(),
        checkpoint=checkpoint,
        files=tuple(files),
        config_digest=config_digest,
        samples_seen=samples_seen,
        training_seconds=training_seconds,
        committed_at=surroundings.timestamp(),
    )
    stop_if_superseded(store, attempt)
    writing.create(
        store,
        names.checkpoint_object(checkpoint, names.COMMIT_SUFFIX),
        encode(commit),
        before_again=lambda: stop_if_superseded(store, attempt),
        surroundings=surroundings,
    )
    return commit


def read_commit(store: ObjectStore, checkpoint: CheckpointId) -> Commit:
    """A checkpoint's commit.

    Raises:
        ObjectNotFoundError: it was retired, or never committed.
        CheckpointDamagedError: the commit itself is damaged.
    """
    name = names.checkpoint_object(checkpoint, names.COMMIT_SUFFIX)
    data = store.get(name).data
    try:
        commit = decode(data, Commit, name=name)
    except StoreError as error:
        raise CheckpointDamagedError(str(error)) from error
    if commit.checkpoint != checkpoint:
        raise CheckpointDamagedError(f"{name} is the commit of {commit.checkpoint}")
    return commit


def tensorflow_files(local_prefix: Path) -> dict[str, Path]:
    """The files of a checkpoint in a local folder, by suffix; StoreError when one is missing."""
    start = local_prefix.name
    found = {
        path.name[len(start) :]: path
        for path in local_prefix.parent.iterdir()
        if path.name.startswith(start) and names.is_data_suffix(path.name[len(start) :])
    }
    if ".index" not in found or len(found) < 2:
        raise StoreError(
            f"there is no whole TensorFlow checkpoint at {local_prefix}: found "
            f"{sorted(found) or 'no file'}, expected .index and .data-?????-of-?????"
        )
    return found


def _put_file(
    store: ObjectStore,
    checkpoint: CheckpointId,
    suffix: str,
    path: Path,
    *,
    on_bytes: Callable[[int], None],
    surroundings: Surroundings,
) -> CommittedFile:
    name = names.checkpoint_object(checkpoint, suffix)
    stat: ObjectStat = writing.create_from_file(
        store, name, path, on_bytes=on_bytes, surroundings=surroundings
    )
    return CommittedFile(
        suffix=suffix, size=stat.size, crc32c=stat.crc32c, generation=stat.generation
    )
