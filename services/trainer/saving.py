"""Saving behind the step loop: the loop pays for a host copy, the rest happens in a thread.

Each save that is due is committed, in order. One may be under way and one wait with its copy of the
state; when a third is due, the loop stands still until the first is committed. It could give the
waiting one's place to the newer, and would never stand still; but whoever asks for a checkpoint
every n steps has an evaluator and a retention policy that count on those very steps, and a store
that is too slow for that shows as a stall (`tandem_ckpt_stall_seconds`) instead of as gaps that
nobody notices. Only when the process is asked to stop, earlier ones give way to the last: the one
that waits, and the one under way unless it is nearly done, or the last would come too late anyway
(`giving_way`). So a stop that makes its deadline takes at most one and a quarter times as long as
a save.

Failures: what won't get better by itself (a refusal, damage, a newer attempt) is raised in the loop
after the step under way. A store that is unavailable, or a full disk, costs that checkpoint and is
logged and counted; the next save, with the newer state, is the next try, and the third failure in a
row is raised. The last save has no next one: its own state is tried again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from types import TracebackType
from typing import NamedTuple

from services.signals import StopRequest
from services.trainer.background import Background, Job
from services.trainer.committing import Committer
from services.trainer.giving_way import GivenUpError, Progress, is_worth_ending
from services.trainer.loop import StepFacts
from tandem.checkpoints.attempts import Attempt
from tandem.errors import StoreUnavailableError, TandemError
from tandem.telemetry.labels import SaveOutcome
from tandem.telemetry.trainer_metrics import TrainerMetrics
from tandem.training.snapshots import Snapshot, Snapshots
from tandem.training.states import TrainingState

logger = logging.getLogger(__name__)

_LOOK_SECONDS = 0.25
_CLOSING_SECONDS = 1.0
_AGAIN_SECONDS = 1.0
_MAX_FAILURES = 3


class _Save(NamedTuple):
    """A step on its way: its state and what belongs to it."""

    step: int
    snapshot: Snapshot
    samples_seen: int
    training_seconds: float
    began: float


def _nothing() -> None:
    pass


class Saver:
    """Commits states of steps; a context, which ends the thread that does it.

    `save`, `finish` and the other methods are the loop's. `committed_step` is the newest step of
    this attempt's line that is safe.
    """

    def __init__(
        self,
        committer: Committer,
        attempt: Attempt,
        state: TrainingState,
        *,
        background: Background,
        metrics: TrainerMetrics,
        stop: StopRequest,
        deadline_seconds: float,
        on_wait: Callable[[float], None],
        on_failure: Callable[[BaseException], None] = lambda error: None,
        batch_size: int,
        samples_before: int,
        seconds_before: float,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Begins at the step of ``state``.

        Args:
            committer: commits the files of a step.
            attempt: that checkpoints belong to.
            state: what to save.
            background: where it is written and committed; ends with this.
            metrics: told of every save and stall.
            stop: asked while the loop waits.
            deadline_seconds: from the wish to stop; what isn't committed by then is given up.
            on_wait: called again and again while the loop waits, with the seconds since it began
                to.
            on_failure: told of each failure to save, in the background's thread.
            batch_size: images per step.
            samples_before: images seen up to this attempt.
            seconds_before: training time up to this attempt.
            monotonic: seconds; the clock of ``stop``.
            sleep: waits before the last save is tried again.
        """
        self._committer = committer
        self._state = state
        self._metrics = metrics
        self._stop = stop
        self._deadline_seconds = deadline_seconds
        self._on_wait = on_wait
        self._on_failure = on_failure
        self._batch_size = batch_size
        self._samples_before = samples_before
        self._seconds_before = seconds_before
        self._monotonic = monotonic
        self._sleep = sleep
        self._began = monotonic()
        self._first_step = state.step
        self.committed_step: int | None = state.step if attempt.resumed_from else None
        self._queued_step: int | None = None
        self._failures: list[StoreUnavailableError] = []  # in a row
        self._is_ending = False
        self._last_step: int | None = None
        self._snapshots = Snapshots(state.tensors)
        self._background = background
        metrics.watch_pending(lambda: self._background.num_pending)

    def __enter__(self) -> Saver:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """After an error that is none of ours, what is queued may still be committed."""
        if isinstance(error, Exception) and not isinstance(error, TandemError):
            try:
                seconds = min(self._deadline_seconds, max(0.0, self.seconds_left()))
                self._background.wait_until_idle(seconds)
            except Exception as failure:  # noqa: BLE001  # the first error is the one to show
                logger.error("a checkpoint was lost on the way out: %s", failure)
        if not self._background.close(_CLOSING_SECONDS):
            logger.warning("leaving although the writing of a checkpoint has not come to an end")

    @property
    def num_failures(self) -> int:
        """Saves that have failed in a row, up to now."""
        return len(self._failures)

    @property
    def num_pending(self) -> int:
        """Saves under way (1), and one more that waits (2)."""
        return self._background.num_pending

    def raise_failure(self) -> None:
        """Raises what a save has failed with."""
        self._background.raise_failure()

    def after_step(self, facts: StepFacts) -> None:
        """Saves the step that was just finished."""
        self.save()

    def save(self) -> None:
        """Has the present step committed; waits only for a free place.

        When the wish to stop comes meanwhile, it leaves the step to `finish`.

        Raises:
            AttemptSupersededError: a newer attempt has taken over.
            StoreError: an earlier save failed.
        """
        self._background.raise_failure()
        step = self._state.step
        if step in (self.committed_step, self._queued_step):
            return
        began = self._monotonic()
        if self._wait_for_place(step):
            self._queue(step)
        self._metrics.record_stall(self._monotonic() - began)

    def finish(self) -> None:
        """Commits the present step, and returns when nothing is under way any more.

        Raises:
            AttemptSupersededError: a newer attempt has taken over.
            StoreError: the step is not committed, or not by the deadline.
        """
        self._is_ending = True
        self._last_step = step = self._state.step
        if step not in (self.committed_step, self._queued_step):
            self._await(self._is_place_for_last)
            self._queue(step)
        self._await(self._background.wait_until_idle)
        if self.committed_step != step:  # failed before it was known to be the last
            self._queue(step)
            self._await(self._background.wait_until_idle)

    def settle(self) -> None:
        """Returns when everything that was queued is committed; raises as `finish` does."""
        self._is_ending = True
        self._await(self._background.wait_until_idle)
        if self._failures:
            raise self._failures[-1]

    def act_last(self, act: Callable[[], None]) -> None:
        """Does something with the store after the last save, and within its deadline."""
        self._background.put(Job(act, _nothing))
        self._await(self._background.wait_until_idle, "the end of the attempt is not recorded")

    def seconds_left(self) -> float:
        """Until the deadline, negative after it; endless when nobody has asked to stop."""
        asked_at = self._stop.asked_at
        if asked_at is None:
            return float("inf")
        return asked_at + self._deadline_seconds - self._monotonic()

    def _wait_for_place(self, step: int) -> bool:
        """False when asked to stop first."""
        began = self._monotonic()
        if self._background.wait_for_place(0.0):
            return True
        self._metrics.set_phase("saving")
        logger.info("step %d waits, as two checkpoints are still on their way", step)
        self._on_wait(0.0)
        while not self._background.wait_for_place(_LOOK_SECONDS):
            if self._stop():
                return False
            self._on_wait(self._monotonic() - began)
        self._metrics.set_phase("training")
        return True

    def _is_place_for_last(self, seconds: float) -> bool:
        if self._stop() and self._background.drop_waiting():
            logger.warning("a checkpoint that waited gives way to the last one")
        return self._background.wait_for_place(seconds)

    def _await(self, is_ready: Callable[[float], bool], lacking: str | None = None) -> None:
        began = self._monotonic()
        if is_ready(0.0):
            return
        self._metrics.set_phase("saving")
        self._on_wait(0.0)
        while not is_ready(min(_LOOK_SECONDS, self.seconds_left())):
            if self.seconds_left() <= 0:
                raise StoreUnavailableError(
                    f"{lacking or f'step {self._state.step} is not committed'} "
                    f"{self._deadline_seconds:g} s after the wish to stop "
                    f"(--termination-deadline); committed is {self.committed_step or 'nothing'}"
                )
            self._on_wait(self._monotonic() - began)

    def _queue(self, step: int) -> None:
        now = self._monotonic()
        snapshot = self._snapshots.take()
        self._metrics.record_save_phase("snapshot", self._monotonic() - now)
        save = _Save(
            step,
            snapshot,
            samples_seen=self._samples_before + (step - self._first_step) * self._batch_size,
            training_seconds=self._seconds_before + now - self._began,
            began=now,
        )
        self._background.put(Job(lambda: self._carry_out(save), save.snapshot.release))
        self._queued_step = step

    def _carry_out(self, save: _Save) -> None:
        """In the background's thread."""
        try:
            while not self._is_committed(save):
                if not self._is_ending:
                    return
                self._sleep(_AGAIN_SECONDS)
        except GivenUpError:
            logger.warning("the checkpoint of step %d gives way to the last one", save.step)
            return
        self._committer.tidy_up(retire=not self._stop())

    def _is_committed(self, save: _Save) -> bool:
        outcome: SaveOutcome | None = "error"
        progress = Progress(save.snapshot.num_bytes, lambda part: self._is_wanted(save, part))
        try:
            commit = self._committer.put(
                save.step,
                save.snapshot.write,
                samples_seen=save.samples_seen,
                training_seconds=save.training_seconds,
                on_bytes=progress,
            )
            outcome = "ok"
        except GivenUpError:
            outcome = None
            raise
        except StoreUnavailableError as error:
            self._failures.append(error)
            self._on_failure(error)
            if len(self._failures) >= _MAX_FAILURES:
                raise
            logger.warning("the checkpoint of step %d is not committed: %s", save.step, error)
            return False
        finally:
            seconds = self._monotonic() - save.began
            if outcome is not None:
                self._metrics.record_save(save.step, outcome=outcome, seconds=seconds)
        self._failures.clear()
        self.committed_step = save.step
        size = commit.size / 1e6
        logger.info("checkpoint %d committed: %.1f MB in %.2f s", save.step, size, seconds)
        return True

    def _is_wanted(self, save: _Save, part_gone: float) -> bool:
        is_outdated = self._last_step is not None and self._last_step != save.step
        if not (is_outdated and self._stop()):
            return True
        return is_worth_ending(
            part_gone,
            seconds_gone=self._monotonic() - save.began,
            seconds_left=self.seconds_left(),
        )
