"""The evaluator's loop: look, choose, lease, verify, restore, score, record, project, release."""

from __future__ import annotations

import logging
import math
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from services.evaluator.jobs import JobWatch
from services.evaluator.recording import Recorder
from services.evaluator.sources import Readable, Source
from services.evaluator.watch import Ending, Policy, Situation, ending, in_order
from services.signals import StopRequest, StopRequestedError
from services.watchdog import Place, Where
from tandem.checkpoints.attempts import Outcome
from tandem.checkpoints.heartbeats import Fact, Heartbeat
from tandem.checkpoints.leases import Lease, Leases
from tandem.checkpoints.ledger import LedgerEntry, LedgerReader, LedgerView
from tandem.checkpoints.lines import Line
from tandem.checkpoints.names import CheckpointId
from tandem.checkpoints.objects import ObjectStore, nothing
from tandem.checkpoints.surroundings import SYSTEM, Surroundings
from tandem.checkpoints.tries import MAX_TRIES, record_try, withdraw_try
from tandem.errors import (
    CheckpointDamagedError,
    ConfigError,
    ObjectNotFoundError,
    RecordError,
    StoreUnavailableError,
)
from tandem.kube.reporting import Reporter
from tandem.telemetry.evaluator_metrics import EvaluatorMetrics
from tandem.telemetry.health import Health
from tandem.telemetry.labels import EvalPhase, RunOutcome

if TYPE_CHECKING:  # the loop itself needs no TensorFlow
    from tandem.evaluation.build import EvalTask
    from tandem.evaluation.scoring import Evaluation

logger = logging.getLogger(__name__)

# Loading and compiling happen between two signs of life.
_PATIENCE_SECONDS = 1800.0
_BEAT_SECONDS = 5.0
_ASK_CLUSTER_SECONDS = 15.0  # a trainer that beats needs no look at its Job

LOOKING = Place("looking at the run folder", patience_seconds=120.0)  # it may be out of reach
WAITING = Place("waiting for the next look", patience_seconds=math.inf)  # which can't hang
RESTORING = Place("restoring", patience_seconds=300.0)
FIRST_BATCH = Place("scoring", patience_seconds=_PATIENCE_SECONDS)
"""The first batch of a set is compiled as well, which takes minutes."""
SCORING = Place("scoring")
MEASURING = Place("scoring", patience_seconds=600.0)  # all images at once
PUBLISHING = Place("publishing", patience_seconds=120.0)
STAYING = Place("serving metrics after the end", patience_seconds=math.inf)


class LeaseLostError(Exception):
    """The checkpoint is no longer this process's to read; says why."""


_OUTCOMES: dict[Outcome | None, RunOutcome] = {
    None: "running",
    Outcome.FINISHED: "finished",
    Outcome.FAILED: "failed",
    Outcome.PREEMPTED: "preempted",
}


def _unheard(error: BaseException) -> None:
    pass


def _unknown_time(checkpoint: CheckpointId) -> float | None:
    return None


class Projection(Protocol):
    """Shows one eval set's ledger elsewhere."""

    def update(self, entries: Sequence[LedgerEntry], *, among: Sequence[CheckpointId]) -> None:
        """See `services.evaluator.projections.Projections`."""


class Evaluator:
    """Scores every checkpoint of a run's line, once per eval set."""

    def __init__(
        self,
        *,
        source: Source,
        results: ObjectStore,
        load: Callable[[Path], None],
        tasks: tuple[EvalTask, ...],
        projections: Mapping[str, Projection],
        recorder: Recorder,
        heartbeat: Heartbeat,
        metrics: EvaluatorMetrics,
        health: Health,
        policy: Policy,
        scratch: Path,
        stop: StopRequest,
        reporter: Reporter,
        trainer_job: JobWatch,
        where: Where | None = None,
        on_failure: Callable[[BaseException], None] = _unheard,
        on_damage: Callable[[], None] = nothing,
        committed_at: Callable[[CheckpointId], float | None] = _unknown_time,
        facts: dict[str, Fact] | None = None,
        surroundings: Surroundings = SYSTEM,
    ) -> None:
        """Wires the parts.

        Args:
            source: of the checkpoints.
            results: store to write the ledger to.
            load: restores the scored variables from a checkpoint's prefix.
            tasks: the eval sets.
            projections: by eval set name.
            recorder: writes ledger entries.
            heartbeat: this process's.
            metrics: Prometheus.
            health: of this loop.
            policy: which checkpoint next.
            scratch: folder that the source fetches checkpoints into; emptied after each.
            stop: asked between and during evaluations.
            reporter: tells the cluster.
            trainer_job: looked at while the trainer is silent.
            where: told where this loop is.
            on_failure: told of what goes wrong and doesn't end the watch.
            on_damage: told of each checkpoint that is found damaged.
            committed_at: when a checkpoint was committed, in seconds since 1970.
            facts: what each heartbeat says besides; how far this is, is added to it.
            surroundings: clock, randomness.
        """
        self._source = source
        self._results = results
        self._load_variables = load
        self._tasks = tasks
        self._projections = projections
        self._recorder = recorder
        self._heartbeat = heartbeat
        self._metrics = metrics
        self._health = health
        self._policy = policy
        self._scratch = scratch
        self._stop = stop
        self._reporter = reporter
        self._trainer_job = trainer_job
        self._where = where or Where(LOOKING)
        self._on_failure = on_failure
        self._on_damage = on_damage
        self._committed_at = committed_at
        self._surroundings = surroundings
        self._monotonic = surroundings.monotonic
        self._ledger = LedgerReader(results)
        self._views: dict[str, LedgerView] = {}
        self._loaded: tuple[CheckpointId, Readable] | None = None
        self._failures: dict[tuple[CheckpointId, str], list[str]] = {}
        self._seen: object = None
        self._seen_at = self._monotonic()
        self._patience_seconds = _PATIENCE_SECONDS
        self._num_attempts = 0
        self._said: tuple[EvalPhase, float] | None = None
        self._facts = {} if facts is None else facts
        self._scored_here: set[str] = set()

    def watch(self, *, wait_interval: float, poll_interval: float) -> Ending:
        """Evaluates until the watch is over.

        Args:
            wait_interval: seconds of quiet to tolerate.
            poll_interval: seconds between looks.
        """
        self._patience_seconds = max(_PATIENCE_SECONDS, 2 * poll_interval)
        while not self._stop():
            self._where.at = LOOKING
            try:
                line = self._source.look()
                self._num_attempts = len(line.attempts)
                self._look_at_ledger(line)
                situation = self._situation(line)
                self._project(line)
                decided = ending(situation, wait_interval=wait_interval)
                if decided is not None:
                    return decided
                worked = self._work_on(line, in_order(list(situation.pending), self._policy))
            except StoreUnavailableError as error:
                logger.warning("the run folder is out of reach for now: %s", error)
                self._on_failure(error)
                worked = False
            except StopRequestedError:
                break
            if not worked:
                self._say("waiting")
                self._where.at = WAITING
                self._stop.wait(poll_interval)
        return Ending.STOPPED

    def has_news(self) -> bool:
        """Whether a trainer has begun since the watch ended, so that there is more to watch.

        Raises:
            StoreUnavailableError: the run folder is out of reach.
        """
        return len(self._source.look().attempts) > self._num_attempts

    def _look_at_ledger(self, line: Line) -> None:
        """Reads what may have changed: entries stay, so a full ledger needs no second look."""
        for task in self._tasks:
            view = self._views.get(task.eval_set.name)
            if view is None or not view.recorded.issuperset(line.checkpoints):
                self._views[task.eval_set.name] = self._ledger.look(task.eval_set)
        unreadable = sum(len(view.recorded) - len(view.entries) for view in self._views.values())
        self._facts["unreadable_entries"] = unreadable
        self._metrics.show_unreadable_entries(unreadable)

    def _situation(self, line: Line) -> Situation:
        pending = [c for c in line.checkpoints if self._is_pending(c) and c not in line.retiring]
        newest = line.newest
        self._facts["backlog"] = len(pending)
        self._metrics.record_listing(
            newest_step=newest.step if newest else None,
            backlog=len(pending),
            oldest_pending_at=self._committed_at(min(pending)) if pending else None,
        )
        self._metrics.show_outcome(_OUTCOMES[line.outcome] if line.attempts else None)
        facts = (line.checkpoints, len(line.attempts), len(line.ends))
        now = self._monotonic()
        if facts != self._seen:
            self._seen, self._seen_at = facts, now
        quiet = now - self._seen_at
        silence = self._source.trainer_silence()
        quiet = quiet if silence is None else min(quiet, silence)
        may_end = line.outcome is not None or quiet >= _ASK_CLUSTER_SECONDS
        job = self._trainer_job.look() if may_end else None
        return Situation(line.outcome, pending, quiet, job.phase if job else None)

    def _is_pending(self, checkpoint: CheckpointId) -> bool:
        return any(not self._is_recorded(checkpoint, task) for task in self._tasks)

    def _is_recorded(self, checkpoint: CheckpointId, task: EvalTask) -> bool:
        return checkpoint in self._views[task.eval_set.name].recorded

    def _project(self, line: Line) -> None:
        for task in self._tasks:
            entries = self._views[task.eval_set.name].entries
            self._projections[task.eval_set.name].update(entries, among=line.checkpoints)

    def _work_on(self, line: Line, pending: list[CheckpointId]) -> bool:
        """Handles the first checkpoint that is free; False when there is none."""
        for checkpoint in pending:
            for task in self._tasks:
                if self._is_recorded(checkpoint, task):
                    continue
                if checkpoint in line.damaged:
                    self._give_damaged_up(checkpoint, task)
                    return True
                lease = self._source.leases.acquire(
                    checkpoint, task.eval_set.name or "eval", eval_set=task.eval_set
                )
                if lease is not None:
                    self._handle(_Held(self._source.leases, lease), task)
                    return True
        return False

    def _handle(self, held: _Held, task: EvalTask) -> None:
        checkpoint = held.lease.checkpoint
        self._metrics.set_lease_held(held=True)
        try:
            self._try(held, task)
        except LeaseLostError as error:
            logger.warning("the evaluation of checkpoint %s is given up: %s", checkpoint, error)
        except ObjectNotFoundError:
            logger.info("checkpoint %s was retired meanwhile", checkpoint)
        except CheckpointDamagedError as error:
            logger.error("%s", error)
            self._on_failure(error)
            self._on_damage()
            self._give_damaged_up(checkpoint, task)
        finally:
            self._facts.pop("tries_failed", None)
            self._metrics.set_lease_held(held=False)
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
            surroundings=self._surroundings,
        )
        if number is None:
            self._recorder.given_up(checkpoint, task, failures)
            return
        self._facts["tries_failed"] = number - 1
        began = self._monotonic()
        try:
            readable, evaluation = self._evaluate(held, task)
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
            self._on_failure(error)
            self._facts["tries_failed"] = number
            if isinstance(error, RecordError):
                self._metrics.count_bad_records(eval_set.name, 1)
            self._metrics.count_attempt(
                eval_set.name, outcome="error", seconds=self._monotonic() - began
            )
            self._say("backing_off", checkpoint.step)
            return
        self._where.at = PUBLISHING
        self._say("publishing", checkpoint.step)
        seconds = self._monotonic() - began
        if self._recorder.scored(
            checkpoint, task, readable=readable, evaluation=evaluation, seconds=seconds
        ):
            self._metrics.count_attempt(
                eval_set.name, outcome="ok", seconds=seconds, num_images=evaluation.num_scored
            )

    def _evaluate(self, held: _Held, task: EvalTask) -> tuple[Readable, Evaluation]:
        step = held.lease.checkpoint.step
        self._where.at = RESTORING
        readable = self._load(held)
        self._say("running", step)
        self._where.at = SCORING if task.eval_set.name in self._scored_here else FIRST_BATCH

        def on_progress(done: int, expected: int) -> None:
            self._where.at = SCORING if done < expected else MEASURING
            self._scored_here.add(task.eval_set.name)
            self._come_by(held)
            self._metrics.record_images(done, expected=expected)
            self._say("running", step, done=done, expected=expected)

        evaluation = task.scorer.score(on_progress=on_progress, monotonic=self._monotonic)
        return readable, evaluation

    def _load(self, held: _Held) -> Readable:
        """Restores the checkpoint, unless it was the last one: once for all eval sets."""
        checkpoint = held.lease.checkpoint
        if self._loaded is not None and self._loaded[0] == checkpoint:
            return self._loaded[1]
        self._loaded = None
        self._say("restoring", checkpoint.step)
        try:
            readable = self._source.fetch(checkpoint, on_piece=lambda: self._fetch_on(held))
            self._load_variables(readable.prefix)
        except OSError as error:  # a full disk, mostly: that says nothing about the checkpoint
            raise StoreUnavailableError(
                f"checkpoint {checkpoint} can't be read here: {error}"
            ) from error
        finally:
            shutil.rmtree(self._scratch, ignore_errors=True)
        self._loaded = (checkpoint, readable)
        return readable

    def _fetch_on(self, held: _Held) -> None:
        self._where.at = RESTORING
        self._come_by(held)

    def _come_by(self, held: _Held) -> None:
        """Between two pieces of work."""
        if self._stop():
            raise StopRequestedError
        held.renew_if_due(self._monotonic())

    def _give_damaged_up(self, checkpoint: CheckpointId, task: EvalTask) -> None:
        try:
            self._recorder.damaged(checkpoint, task)
        except ObjectNotFoundError:
            logger.info("checkpoint %s was retired meanwhile", checkpoint)
            return
        self._metrics.count_attempt(task.eval_set.name, outcome="skipped")

    def _say(self, phase: EvalPhase, step: int | None = None, **facts: int) -> None:
        self._health.beat(phase=phase, step=step, patience_seconds=self._patience_seconds)
        self._metrics.set_phase(phase)
        self._reporter.annotate(phase=phase, step=step)
        now = self._monotonic()
        if (
            self._said is not None
            and self._said[0] == phase
            and now - self._said[1] < _BEAT_SECONDS
        ):
            return  # a store takes no more than about one write a second to the same object
        self._said = (phase, now)
        try:
            self._heartbeat.beat(phase, step, **{**self._facts, **facts})
        except StoreUnavailableError as error:
            logger.warning("the heartbeat was not written: %s", error)
            self._on_failure(error)


class _Held:
    """A lease in use; renewed well within its time."""

    def __init__(self, leases: Leases, lease: Lease) -> None:
        self._leases = leases
        self.lease = lease

    def renew_if_due(self, now: float) -> None:
        """Renews; raises LeaseLostError when the lease is gone, or another's by now."""
        if now - self.lease.renewed_at < self._leases.renew_seconds:
            return
        renewed = self._leases.renew(self.lease)
        if renewed is None:
            raise LeaseLostError(self._leases.why_lost(self.lease))
        self.lease = renewed

    def release(self) -> None:
        """Lets go."""
        self._leases.release(self.lease)
