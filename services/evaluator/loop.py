"""The evaluator's loop: look, choose, lease, verify, restore, score, record, project, release."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import tensorflow as tf

from services.evaluator.projections import Projections
from services.evaluator.recording import Recorder
from services.evaluator.watch import Ending, Policy, Situation, ending, in_order
from services.signals import StopRequest, StopRequestedError
from tandem.checkpoints.commits import Commit
from tandem.checkpoints.fetching import fetch_checkpoint
from tandem.checkpoints.heartbeats import TRAINER, Heartbeat, HeartbeatWatcher
from tandem.checkpoints.leases import Lease, Leases
from tandem.checkpoints.ledger import LedgerReader, recorded_checkpoints
from tandem.checkpoints.lines import Line, LineReader
from tandem.checkpoints.names import CheckpointId
from tandem.checkpoints.objects import ObjectStore
from tandem.checkpoints.tries import MAX_TRIES, record_try, withdraw_try
from tandem.errors import (
    CheckpointDamagedError,
    ConfigError,
    ObjectNotFoundError,
    StoreUnavailableError,
)
from tandem.evaluation.build import EvalTask
from tandem.evaluation.scoring import Evaluation
from tandem.telemetry.health import Health
from tandem.telemetry.metrics import EvalPhase, EvaluatorMetrics
from tandem.training.states import load_tensors

logger = logging.getLogger(__name__)

# Loading and compiling happen between two signs of life.
_PATIENCE_SECONDS = 1800.0


class LeaseLostError(Exception):
    """Another evaluator has taken the checkpoint over."""


class Evaluator:
    """Scores every checkpoint of a run's line, once per eval set."""

    def __init__(
        self,
        *,
        checkpoints: ObjectStore,
        results: ObjectStore,
        tensors: dict[str, tf.Variable],
        tasks: tuple[EvalTask, ...],
        projections: dict[str, Projections],
        recorder: Recorder,
        heartbeat: Heartbeat,
        metrics: EvaluatorMetrics,
        health: Health,
        policy: Policy,
        scratch: Path,
        lease_seconds: float,
        stop: StopRequest,
        monotonic: Callable[[], float],
    ) -> None:
        """Wires the parts.

        Args:
            checkpoints: store to read checkpoints from.
            results: store to write the ledger to, most often the same.
            tensors: variables to restore, by the name they are saved under.
            tasks: the eval sets.
            projections: by eval set name.
            recorder: writes ledger entries.
            heartbeat: this process's.
            metrics: Prometheus.
            health: of this loop.
            policy: which checkpoint next.
            scratch: folder for checkpoints that have to be fetched.
            lease_seconds: silence after which another process counts as gone.
            stop: asked between and during evaluations.
            monotonic: seconds.
        """
        self._checkpoints = checkpoints
        self._results = results
        self._tensors = tensors
        self._tasks = tasks
        self._projections = projections
        self._recorder = recorder
        self._heartbeat = heartbeat
        self._metrics = metrics
        self._health = health
        self._policy = policy
        self._scratch = scratch
        self._lease_seconds = lease_seconds
        self._stop = stop
        self._monotonic = monotonic
        self._lines = LineReader(checkpoints)
        self._ledger = LedgerReader(results)
        self._leases = Leases(checkpoints, holder=recorder.name, lease_seconds=lease_seconds)
        self._trainer = HeartbeatWatcher(checkpoints, TRAINER, stale_seconds=lease_seconds)
        self._failures: dict[tuple[CheckpointId, str], list[str]] = {}
        self._seen: object = None
        self._seen_at = monotonic()

    def watch(self, *, wait_interval: float, poll_interval: float) -> Ending:
        """Evaluates until the watch is over.

        Args:
            wait_interval: seconds of quiet to tolerate.
            poll_interval: seconds between looks.
        """
        while not self._stop():
            try:
                line = self._lines.read()
                situation = self._situation(line)
                self._project(line)
                decided = ending(situation, wait_interval=wait_interval)
                if decided is not None:
                    return decided
                worked = self._work_on(line, in_order(list(situation.pending), self._policy))
            except StoreUnavailableError as error:
                logger.warning("the run folder is out of reach for now: %s", error)
                worked = False
            except StopRequestedError:
                break
            if not worked:
                self._say("waiting")
                self._stop.wait(poll_interval)
        return Ending.STOPPED

    def _situation(self, line: Line) -> Situation:
        pending = [c for c in line.checkpoints if c in self._pending(line)]
        newest = line.newest
        self._metrics.record_listing(
            newest_step=newest.step if newest else None, backlog=len(pending)
        )
        facts = (line.checkpoints, len(line.attempts), len(line.ends))
        now = self._monotonic()
        if facts != self._seen:
            self._seen, self._seen_at = facts, now
        trainer = self._trainer.look()
        quiet = now - self._seen_at
        if trainer.heartbeat is not None:
            quiet = min(quiet, trainer.unchanged_seconds)
        return Situation(line.outcome, pending, quiet)

    def _pending(self, line: Line) -> set[CheckpointId]:
        missing: set[CheckpointId] = set()
        for task in self._tasks:
            missing |= set(line.checkpoints) - recorded_checkpoints(self._results, task.eval_set)
        return missing - line.retiring

    def _project(self, line: Line) -> None:
        for task in self._tasks:
            entries = self._ledger.read(task.eval_set)
            self._projections[task.eval_set.name].update(entries, among=line.checkpoints)

    def _work_on(self, line: Line, pending: list[CheckpointId]) -> bool:
        """Handles the first checkpoint that is free; False when there is none."""
        for checkpoint in pending:
            for task in self._tasks:
                if checkpoint in recorded_checkpoints(self._results, task.eval_set):
                    continue
                if checkpoint in line.damaged:
                    self._give_damaged_up(checkpoint, task)
                    return True
                lease = self._leases.acquire(
                    checkpoint, task.eval_set.name or "eval", eval_set=task.eval_set
                )
                if lease is not None:
                    self._handle(_Held(self._leases, lease, self._lease_seconds), task)
                    return True
        return False

    def _handle(self, held: _Held, task: EvalTask) -> None:
        checkpoint = held.lease.checkpoint
        try:
            self._try(held, task)
        except LeaseLostError:
            logger.warning("lost checkpoint %s to another evaluator", checkpoint)
        except ObjectNotFoundError:
            logger.info("checkpoint %s was retired meanwhile", checkpoint)
        except CheckpointDamagedError as error:
            logger.error("%s", error)
            self._give_damaged_up(checkpoint, task)
        finally:
            held.release()

    def _try(self, held: _Held, task: EvalTask) -> None:
        checkpoint, eval_set = held.lease.checkpoint, task.eval_set
        failures = self._failures.setdefault((checkpoint, eval_set.name), [])
        number = record_try(
            self._results,
            checkpoint,
            eval_set,
            recorder=self._recorder.name,
            last_failure=failures[-1] if failures else "",
        )
        if number is None:
            self._recorder.given_up(checkpoint, task, failures)
            return
        began = self._monotonic()
        try:
            commit, evaluation = self._evaluate(held, task)
        except StopRequestedError:
            withdraw_try(self._results, checkpoint, eval_set, number)
            raise
        except (LeaseLostError, ObjectNotFoundError, CheckpointDamagedError):
            raise
        except (StoreUnavailableError, ConfigError):  # says nothing about the checkpoint
            withdraw_try(self._results, checkpoint, eval_set, number)
            raise
        except Exception as error:  # a bad batch, out of memory: any of them ends this try only
            logger.exception("try %d of %d on checkpoint %s failed", number, MAX_TRIES, checkpoint)
            failures.append(f"{type(error).__name__}: {error}")
            self._metrics.count_attempt(
                eval_set.name, outcome="error", seconds=self._monotonic() - began
            )
            self._say("backing_off", checkpoint.step)
            return
        self._say("publishing", checkpoint.step)
        seconds = self._monotonic() - began
        if self._recorder.scored(
            checkpoint, task, commit=commit, evaluation=evaluation, seconds=seconds
        ):
            self._metrics.count_attempt(
                eval_set.name, outcome="ok", seconds=seconds, num_images=evaluation.num_scored
            )

    def _evaluate(self, held: _Held, task: EvalTask) -> tuple[Commit, Evaluation]:
        checkpoint = held.lease.checkpoint
        self._say("restoring", checkpoint.step)
        fetched = fetch_checkpoint(
            self._checkpoints, checkpoint, self._scratch, reader=self._recorder.name
        )
        load_tensors(self._tensors, fetched.prefix)
        self._say("running", checkpoint.step)

        def on_progress(done: int, expected: int) -> None:
            if self._stop():
                raise StopRequestedError
            held.renew_if_due(self._monotonic())
            self._metrics.record_images(done, expected=expected)
            self._say("running", checkpoint.step, done=done, expected=expected)

        evaluation = task.scorer.score(on_progress=on_progress, monotonic=self._monotonic)
        return fetched.commit, evaluation

    def _give_damaged_up(self, checkpoint: CheckpointId, task: EvalTask) -> None:
        self._recorder.damaged(checkpoint, task)
        self._metrics.count_attempt(task.eval_set.name, outcome="skipped")

    def _say(self, phase: EvalPhase, step: int | None = None, **facts: int) -> None:
        self._health.beat(phase=phase, step=step, patience_seconds=_PATIENCE_SECONDS)
        self._metrics.set_phase(phase)
        self._heartbeat.beat(phase, step, **facts)


class _Held:
    """A lease in use; renewed well within its time."""

    def __init__(self, leases: Leases, lease: Lease, lease_seconds: float) -> None:
        self._leases = leases
        self._interval = lease_seconds / 4
        self.lease = lease

    def renew_if_due(self, now: float) -> None:
        """Renews; raises LeaseLostError when the lease is another's by now."""
        if now - self.lease.renewed_at < self._interval:
            return
        renewed = self._leases.renew(self.lease)
        if renewed is None:
            raise LeaseLostError
        self.lease = renewed

    def release(self) -> None:
        """Lets go."""
        self._leases.release(self.lease)
