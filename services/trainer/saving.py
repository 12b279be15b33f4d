"""Saves checkpoints: host copy, files, commit, state file, retiring."""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from services.trainer.loop import StepFacts
from tandem.checkpoints.attempts import Attempt
from tandem.checkpoints.commits import commit_checkpoint
from tandem.checkpoints.objects import ObjectStore
from tandem.checkpoints.retiring import Retirer
from tandem.checkpoints.state_file import write_state_file
from tandem.errors import StoreUnavailableError
from tandem.telemetry.metrics import TrainerMetrics
from tandem.training.states import TrainingState, save_tensors

logger = logging.getLogger(__name__)


def scratch_prefix(attempt: int) -> str:
    """How an attempt's folders of files under way are called; a leading dot hides them."""
    return f".saving-{attempt:04d}-"


def remove_leftovers(scratch: Path, attempt: int) -> None:
    """Removes files under way of earlier attempts, which were killed."""
    for folder in scratch.glob(".saving-*-*"):
        if folder.name.split("-")[1] < f"{attempt:04d}":
            shutil.rmtree(folder, ignore_errors=True)


class Saver:
    """Commits the state of a step; remembers which step is safe."""

    def __init__(
        self,
        store: ObjectStore,
        attempt: Attempt,
        state: TrainingState,
        *,
        retirer: Retirer,
        metrics: TrainerMetrics,
        scratch: Path | None,
        batch_size: int,
        samples_before: int,
        seconds_before: float,
        monotonic: Callable[[], float],
    ) -> None:
        """Begins at the step of ``state``.

        Args:
            store: the run's store.
            attempt: that checkpoints belong to.
            state: what to save.
            retirer: removes what the policy doesn't keep.
            metrics: told of every save.
            scratch: folder to write files in, best on the run's disk; None for the system's.
            batch_size: images per step.
            samples_before: images seen up to this attempt.
            seconds_before: training time up to this attempt.
            monotonic: seconds.
        """
        self._store = store
        self._attempt = attempt
        self._state = state
        self._retirer = retirer
        self._metrics = metrics
        self._scratch = scratch
        self._batch_size = batch_size
        self._samples_before = samples_before
        self._seconds_before = seconds_before
        self._monotonic = monotonic
        self._began = monotonic()
        self._first_step = state.step
        self.committed_step: int | None = state.step if attempt.resumed_from else None

    def after_step(self, facts: StepFacts) -> None:
        """Saves the step that was just finished."""
        self.save()

    def save(self) -> None:
        """Commits the present step, unless it is committed already.

        Raises:
            AttemptSupersededError: a newer attempt has taken over.
            StoreError: nothing was committed.
        """
        step = self._state.step
        if step == self.committed_step:
            return
        began = self._monotonic()
        self._metrics.set_phase("saving")
        try:
            size = self._commit(step)
        except BaseException:
            self._metrics.record_save(step, outcome="error", seconds=self._monotonic() - began)
            raise
        seconds = self._monotonic() - began
        self.committed_step = step
        self._metrics.record_save(step, outcome="ok", seconds=seconds)
        logger.info("checkpoint %d committed: %.1f MB in %.2f s", step, size / 1e6, seconds)
        self._clean_up()
        self._metrics.set_phase("training")

    def _commit(self, step: int) -> int:
        prefix = scratch_prefix(self._attempt.number)
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=self._scratch))
        try:
            save_tensors(self._state.tensors, folder / "ckpt")
            commit = commit_checkpoint(
                self._store,
                self._attempt,
                step=step,
                local_prefix=folder / "ckpt",
                config_digest=self._attempt.config_digest,
                samples_seen=self._samples_before + (step - self._first_step) * self._batch_size,
                training_seconds=self._seconds_before + self._monotonic() - self._began,
            )
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return commit.size

    def _clean_up(self) -> None:
        """The commit stands; what follows can be done again at the next save."""
        try:
            write_state_file(self._store)
            for checkpoint in self._retirer.run_pass().retired:
                logger.info("checkpoint %s retired", checkpoint)
        except StoreUnavailableError as error:
            logger.warning("the checkpoint is safe, but tidying up failed: %s", error)
