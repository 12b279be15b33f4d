"""Where an evaluator's checkpoints come from: a run of ours, or another program's folder."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from tandem.checkpoints import names
from tandem.checkpoints.adopted import UNVERIFIED, AdoptedCheckpoint, adopted_checkpoints
from tandem.checkpoints.commits import Commit, read_commit
from tandem.checkpoints.fetching import fetch_checkpoint, read_damage
from tandem.checkpoints.heartbeats import TRAINER, HeartbeatWatcher
from tandem.checkpoints.leases import Leases
from tandem.checkpoints.lines import Line, LineReader
from tandem.checkpoints.names import CheckpointId
from tandem.checkpoints.objects import ObjectStore
from tandem.checkpoints.surroundings import SYSTEM, Surroundings, seconds_since_1970
from tandem.errors import (
    CheckpointDamagedError,
    ConfigError,
    ObjectNotFoundError,
    StoreError,
    StoreUnavailableError,
)


class Readable(NamedTuple):
    """A checkpoint on this machine.

    Attributes:
        prefix: what TensorFlow's readers take.
        commit: what it was committed with; None when nobody did.
        unverified: what could not be checked of it.
    """

    prefix: Path
    commit: Commit | None
    unverified: tuple[str, ...]


class Source(Protocol):
    """What the evaluator's loop asks of a place that checkpoints are in."""

    @property
    def location(self) -> str:
        """For messages."""

    @property
    def leases(self) -> Leases:
        """Claims on its checkpoints."""

    def look(self) -> Line:
        """The checkpoints that are there now."""

    def trainer_silence(self) -> float | None:
        """Seconds since the trainer last showed life; None when it never has."""

    def committed_at(self, checkpoint: CheckpointId) -> float | None:
        """When it was committed, in seconds since 1970; None when nobody knows."""

    def fetch(self, checkpoint: CheckpointId, *, on_piece: Callable[[], None]) -> Readable:
        """Brings a checkpoint to this machine.

        Raises:
            ObjectNotFoundError: it is gone.
            CheckpointDamagedError: its bytes are not those that were committed.
        """

    def damage(self, checkpoint: CheckpointId) -> str:
        """Why a checkpoint is in quarantine; ObjectNotFoundError when it isn't, or is gone."""


class RunSource:
    """A run: every byte is verified, and a lease keeps what is read.

    Args:
        store: the run's.
        results: store of the ledger, most often the same.
        reader: this process.
        scratch: folder for what has to be fetched.
        lease_seconds: silence after which another process counts as gone.
        surroundings: clock, sleep, randomness.
    """

    def __init__(
        self,
        store: ObjectStore,
        *,
        results: ObjectStore,
        reader: str,
        scratch: Path,
        lease_seconds: float,
        surroundings: Surroundings = SYSTEM,
    ) -> None:
        self._store = store
        self._reader = reader
        self._scratch = scratch
        self._surroundings = surroundings
        self._lines = LineReader(store)
        self._committed_at: dict[CheckpointId, float | None] = {}  # of the one asked for last
        self._trainer = HeartbeatWatcher(
            store, TRAINER, stale_seconds=lease_seconds, surroundings=surroundings
        )
        self.leases = Leases(
            store,
            holder=reader,
            lease_seconds=lease_seconds,
            ledger=results,
            surroundings=surroundings,
        )

    @property
    def location(self) -> str:
        """The run folder."""
        return self._store.location

    def look(self) -> Line:
        """The run's line."""
        return self._lines.read()

    def trainer_silence(self) -> float | None:
        """On this process's own clock."""
        view = self._trainer.look()
        return view.unchanged_seconds if view.heartbeat is not None else None

    def committed_at(self, checkpoint: CheckpointId) -> float | None:
        """From its commit, which is read once."""
        if checkpoint not in self._committed_at:
            self._committed_at = {checkpoint: self._read_time(checkpoint)}
        return self._committed_at[checkpoint]

    def _read_time(self, checkpoint: CheckpointId) -> float | None:
        try:
            return seconds_since_1970(read_commit(self._store, checkpoint).committed_at)
        except (ObjectNotFoundError, CheckpointDamagedError):  # retired meanwhile, or damaged
            return None

    def fetch(self, checkpoint: CheckpointId, *, on_piece: Callable[[], None]) -> Readable:
        """Verifies every byte; puts a damaged checkpoint into quarantine."""
        fetched = fetch_checkpoint(
            self._store,
            checkpoint,
            self._scratch,
            reader=self._reader,
            on_piece=on_piece,
            surroundings=self._surroundings,
        )
        return Readable(fetched.prefix, fetched.commit, ())

    def damage(self, checkpoint: CheckpointId) -> str:
        """From the quarantine's record."""
        try:
            damage = read_damage(self._store, checkpoint)
        except (ObjectNotFoundError, StoreUnavailableError):
            raise
        except StoreError as error:  # the quarantine stands even so
            return f"damaged, and so is the record of what is damaged: {error}"
        return f"damaged: {damage.file}: expected {damage.expected}, found {damage.found}"


def refuse_missing_folder(store: ObjectStore, listed: Collection[str]) -> None:
    """Raises ConfigError where there is no folder; an empty one may fill up.

    Args:
        store: the folder to adopt.
        listed: the names of all that is in it.
    """
    run_file = store.local_path(names.RUN)
    if run_file is not None and run_file.parent.is_dir():
        return
    if run_file is not None or not listed:
        what = "no such folder" if run_file is not None else "no object below it"
        raise ConfigError(
            f"checkpoint_dir is {store.location}, but there is {what}: give the folder that the "
            "checkpoints to adopt are in"
        )


def refuse_inner_folder(store: ObjectStore, listed: Collection[str]) -> None:
    """Raises ConfigError where a run's own `checkpoints/` is given in place of the run.

    Args:
        store: the folder that checkpoints are to come from.
        listed: the names of all that is in it.
    """
    inside = (f"{names.CHECKPOINTS}{name}" for name in listed if "/" not in name)
    parsed = filter(None, map(names.parse_checkpoint_object, inside))
    if any(part.suffix == names.COMMIT_SUFFIX for part in parsed):
        run = store.location.rpartition("/")[0]
        raise ConfigError(
            f"{store.location} is the inner folder of a run, whose checkpoints are verified by "
            f"their commits: give the run, {run}, as checkpoint_dir and leave adopt out"
        )


class AdoptedSource:
    """A folder of the Object Detection API, to which nothing is written.

    Args:
        store: the folder.
        results: store of the ledger; the leases, which only divide work here, are there too.
        reader: this process.
        scratch: folder for what has to be fetched.
        lease_seconds: silence after which another evaluator counts as gone.
    """

    def __init__(
        self,
        store: ObjectStore,
        *,
        results: ObjectStore,
        reader: str,
        scratch: Path,
        lease_seconds: float,
    ) -> None:
        self._store = store
        self._scratch = scratch
        self._found: Mapping[CheckpointId, AdoptedCheckpoint] = {}
        self._seen_at: dict[CheckpointId, float] = {}
        self.leases = Leases(
            results,
            holder=reader,
            lease_seconds=lease_seconds,
            is_open=lambda checkpoint: checkpoint in self.look().checkpoints,
        )

    @property
    def location(self) -> str:
        """The folder."""
        return self._store.location

    def look(self) -> Line:
        """The whole checkpoints in the folder, as a line of no attempt."""
        self._found = adopted_checkpoints(self._store.list(""))
        return Line(
            attempts=(),
            ends={},
            head=None,
            checkpoints=tuple(self._found),
            void=(),
            retiring=frozenset(),
            damaged=frozenset(),
            uncommitted=frozenset(),
        )

    def trainer_silence(self) -> float | None:
        """Other programs leave no heartbeat."""
        return None

    def committed_at(self, checkpoint: CheckpointId) -> float | None:
        """When it was seen first: nothing else tells its age."""
        return self._seen_at.setdefault(checkpoint, time.time())

    def fetch(self, checkpoint: CheckpointId, *, on_piece: Callable[[], None]) -> Readable:
        """Brings the files here as they are."""
        adopted = self._found.get(checkpoint)
        if adopted is None:
            raise ObjectNotFoundError(f"checkpoint {checkpoint} of {self.location} is gone")
        here = self._store.local_path(adopted.prefix)
        return Readable(here or self._download(adopted, on_piece), None, UNVERIFIED)

    def damage(self, checkpoint: CheckpointId) -> str:
        """Nothing is ever put into quarantine here."""
        raise ObjectNotFoundError(f"checkpoint {checkpoint} of {self.location} has no quarantine")

    def _download(self, adopted: AdoptedCheckpoint, on_piece: Callable[[], None]) -> Path:
        self._scratch.mkdir(parents=True, exist_ok=True)
        for name in adopted.files:
            target = self._scratch / name
            target.unlink(missing_ok=True)  # of an earlier fetch that was interrupted
            self._store.download(name, target, on_piece=on_piece)
        return self._scratch / adopted.prefix
