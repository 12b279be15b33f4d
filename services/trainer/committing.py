"""From a checkpoint's files to a committed checkpoint: what a save is without TensorFlow.

Files are written to a scratch folder, committed, and then the state file and the retiring of older
checkpoints follow. The commit is what counts: what comes after it is done again by the next save,
so a store that fails there is only worth a warning.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from time import monotonic

from services.trainer.scratch import (
    files_under_way,
    flushed_while_written,
    system_errors_translated,
)
from tandem.checkpoints import names
from tandem.checkpoints.attempts import Attempt, stop_if_superseded
from tandem.checkpoints.commits import Commit, commit_checkpoint, read_commit
from tandem.checkpoints.names import CheckpointId
from tandem.checkpoints.objects import ObjectStore, ignoring
from tandem.checkpoints.retiring import Retirer
from tandem.checkpoints.state_file import write_state_file
from tandem.checkpoints.surroundings import SYSTEM, Surroundings
from tandem.errors import (
    ObjectExistsError,
    ObjectNotFoundError,
    StoreError,
    StoreUnavailableError,
)
from tandem.telemetry.labels import SavePhase

logger = logging.getLogger(__name__)


def _unmeasured(phase: SavePhase, seconds: float) -> None:
    pass


class _Laps:
    """Tells how long each phase of a save took, one after another."""

    def __init__(self, on_phase: Callable[[SavePhase, float], None]) -> None:
        self._on_phase = on_phase
        self._began = monotonic()

    def end(self, phase: SavePhase) -> None:
        now = monotonic()
        self._on_phase(phase, now - self._began)
        self._began = now


class Committer:
    """Commits checkpoints of one attempt, from one thread."""

    def __init__(
        self,
        store: ObjectStore,
        attempt: Attempt,
        *,
        retirer: Retirer,
        scratch: Path | None,
        on_phase: Callable[[SavePhase, float], None] = _unmeasured,
        surroundings: Surroundings = SYSTEM,
    ) -> None:
        """Begins with nothing committed.

        Args:
            store: the run's store.
            attempt: that checkpoints belong to.
            retirer: removes what the policy doesn't keep.
            scratch: folder to write files in, best on the run's disk; None for the system's.
            on_phase: told of each part of a save that has ended, and its seconds.
            surroundings: clock, sleep, randomness.
        """
        self._on_phase = on_phase
        self._store = store
        self._attempt = attempt
        self._retirer = retirer
        self._scratch = scratch
        self._surroundings = surroundings
        self.newest: Commit | None = None
        """The last commit made here; it stands also when `commit` raised after it."""

    def commit(
        self,
        step: int,
        write_files: Callable[[Path], None],
        *,
        samples_seen: int,
        training_seconds: float,
    ) -> Commit:
        """Commits the checkpoint of a step, brings the state file up to date and retires.

        Args:
            step: finished steps.
            write_files: writes TensorFlow's files at the prefix `FOLDER/NAME` that it is given.
            samples_seen: training examples so far, over all attempts.
            training_seconds: time spent training so far, over all attempts.

        Raises:
            AttemptSupersededError: a newer attempt has taken over.
            StoreError: what failed; `newest` says whether before or after the commit.
        """
        commit = self.put(
            step, write_files, samples_seen=samples_seen, training_seconds=training_seconds
        )
        self.tidy_up()
        return commit

    def put(
        self,
        step: int,
        write_files: Callable[[Path], None],
        *,
        samples_seen: int,
        training_seconds: float,
        on_bytes: Callable[[int], None] = ignoring,
    ) -> Commit:
        """The first half of `commit`: afterwards the checkpoint exists.

        What `on_bytes` raises, before a piece of data goes, ends it with nothing committed.
        """
        try:
            with (
                system_errors_translated(),
                files_under_way(self._scratch, self._attempt.number) as folder,
            ):
                # What goes to a bucket is read again at once, and may be lost with this machine.
                becomes_the_object = self._store.local_path(names.RUN) is not None
                laps = _Laps(self._on_phase)
                with flushed_while_written(folder) if becomes_the_object else nullcontext():
                    write_files(folder / "ckpt")
                laps.end("write")
                self.newest = commit_checkpoint(
                    self._store,
                    self._attempt,
                    step=step,
                    local_prefix=folder / "ckpt",
                    config_digest=self._attempt.config_digest,
                    samples_seen=samples_seen,
                    training_seconds=training_seconds,
                    on_bytes=on_bytes,
                    on_uploaded=lambda: laps.end("upload"),
                    surroundings=self._surroundings,
                )
                laps.end("commit")
        except ObjectExistsError as error:
            self.newest = self._standing(CheckpointId(step, self._attempt.number), error)
        except StoreUnavailableError:
            raise
        except StoreError:
            # A newer attempt takes the files under way of this one for a dead one's.
            stop_if_superseded(self._store, self._attempt)
            raise
        return self.newest

    def tidy_up(self, *, retire: bool = True) -> None:
        """The second half of `commit`; what the store does not do now, it does the next time.

        Args:
            retire: False where there is no time for it; the next save's, or the next attempt's
                pass does all that is due.
        """
        laps = _Laps(self._on_phase)
        try:
            write_state_file(self._store, surroundings=self._surroundings)
            if retire:
                for checkpoint in self._retirer.run_pass().retired:
                    logger.info("checkpoint %s retired", checkpoint)
            laps.end("retire")
        except StoreUnavailableError as error:
            logger.warning("the checkpoint is safe, but tidying up failed: %s", error)

    def _standing(self, checkpoint: CheckpointId, error: ObjectExistsError) -> Commit:
        """The commit of an earlier try of ours whose answer was lost: the name is only ours."""
        try:
            return read_commit(self._store, checkpoint)
        except ObjectNotFoundError:
            raise error from None
