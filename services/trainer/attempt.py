"""One claimed attempt: its steps, what is saved and said on the way, and how it ends."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from services.events import EventFolder
from services.exits import Exit
from services.signals import StopRequest
from services.trainer.accounting import Accounting, endings_before
from services.trainer.actions import (
    EveryNSteps,
    EverySeconds,
    EveryStep,
    ProgressLog,
    Summaries,
)
from services.trainer.background import Background
from services.trainer.beating import Beats
from services.trainer.committing import Committer
from services.trainer.experiment import Experiment
from services.trainer.loop import Action, StepFacts, run_steps
from services.trainer.pace import Pace
from services.trainer.posting import Posts
from services.trainer.saving import Saver
from services.trainer.scratch import (
    files_under_way,
    remove_if_empty,
    remove_leftovers,
    scratch_folder,
)
from services.trainer.settings import TrainerSettings
from services.vitals import Vitals
from services.watchdog import Place, Watchdog, Where
from tandem.checkpoints import writing
from tandem.checkpoints.attempts import Attempt, Outcome, end_attempt, stop_if_superseded
from tandem.checkpoints.commits import Commit
from tandem.checkpoints.heartbeats import TRAINER
from tandem.checkpoints.lines import read_line
from tandem.checkpoints.objects import ObjectStore
from tandem.checkpoints.retiring import Retirer
from tandem.checkpoints.state_file import write_state_file
from tandem.checkpoints.surroundings import seconds_since_1970
from tandem.errors import (
    AttemptSupersededError,
    DataError,
    InputError,
    StoreError,
    TandemError,
    TrainingError,
)
from tandem.kube.reporting import Reporter
from tandem.telemetry.health import Health
from tandem.telemetry.labels import TrainPhase
from tandem.telemetry.logs import LogFields
from tandem.telemetry.trainer_metrics import TrainerMetrics
from tandem.training.restore import RestoreReport

logger = logging.getLogger(__name__)

# The first step may take long, as it is compiled.
START_PATIENCE_SECONDS = 1800.0
_PATIENCE_STEPS = 20
_SAVE_PATIENCE_SECONDS = 1800.0

# Scalars of a run in a bucket get there this often.
_UPLOAD_SECONDS = 30.0

# What is left to be done for the scalars and the heartbeat at the end, at most this long.
_LAST_UPLOAD_SECONDS = 10.0
_LAST_BEAT_SECONDS = 5.0
_LATE_BEAT_SECONDS = 1.0  # after the deadline for a stop

_STARTING = Place("starting", patience_seconds=300.0)  # the store may take its time
_SAVING = Place("saving")
_ENDING = Place("recording the end")

_PHASES: dict[Outcome, TrainPhase] = {
    Outcome.FINISHED: "finished",
    Outcome.FAILED: "failed",
    Outcome.PREEMPTED: "preempted",
}


class ClaimedAttempt:
    """One claimed attempt, from its first step to its end."""

    def __init__(
        self,
        settings: TrainerSettings,
        store: ObjectStore,
        experiment: Experiment,
        attempt: Attempt,
        commit: Commit | None,
        *,
        metrics: TrainerMetrics,
        health: Health,
        stop: StopRequest,
        log_fields: LogFields,
        reporter: Reporter,
        vitals: Vitals,
        began: float,
    ) -> None:
        self._settings = settings
        self._store = store
        self._experiment = experiment
        self._attempt = attempt
        self._metrics = metrics
        self._health = health
        self._stop = stop
        self._log_fields = log_fields
        self._reporter = reporter
        self._vitals = vitals
        self._where = Where(_STARTING)
        self._pace = Pace()
        self._scratch = scratch_folder(store, settings.scratch_dir)
        self._scratch.mkdir(exist_ok=True, parents=True)
        remove_leftovers(self._scratch, attempt.number)
        self._beats = Beats(
            store,
            attempt,
            interval_seconds=settings.heartbeat_interval,
            closing_seconds=self._seconds_for_last_beat,
            more_facts=vitals.facts,
            on_failure=vitals.note,
        )
        self._saver = Saver(
            Committer(
                store,
                attempt,
                retirer=Retirer(store, attempt),
                scratch=self._scratch,
                on_phase=metrics.record_save_phase,
            ),
            attempt,
            experiment.state,
            background=Background(),
            metrics=metrics,
            stop=stop,
            deadline_seconds=settings.termination_deadline,
            on_wait=self._wait_for_saves,
            on_failure=vitals.note,
            batch_size=experiment.batch_size,
            samples_before=commit.samples_seen if commit else 0,
            seconds_before=commit.training_seconds if commit else 0.0,
        )
        self._accounting = Accounting(
            metrics, began=began, redone_until=experiment.state.step + attempt.lost_steps
        )
        if commit is not None:
            metrics.restore_commit(
                commit.checkpoint.step, committed_at=seconds_since_1970(commit.committed_at)
            )
        self._posts = Posts(
            self._beats,
            self._pace,
            self._saver,
            last_step=experiment.last_step,
            checkpoint_every_n=settings.checkpoint_every_n,
        )
        self._watchdog = Watchdog(
            store,
            TRAINER,
            where=self._where,
            health=health,
            host=vitals.host,
            attempt=attempt.number,
            least_patience=lambda: self._pace.seconds_of(_PATIENCE_STEPS) or 0.0,
        )

    def run(self, report: RestoreReport | None) -> Exit:
        """Trains; nothing of it is left running afterwards."""
        try:
            with (
                self._beats,
                self._word_of_failure(),
                self._watchdog,
                self._saver,
                self._supersession_first(),
            ):
                self._record_start(report)
                return self._train()
        finally:
            remove_if_empty(self._scratch)

    @contextmanager
    def _word_of_failure(self) -> Iterator[None]:
        """Leaves word in the run folder of what ends this attempt before its time."""
        try:
            yield
        except AttemptSupersededError:
            raise  # the heartbeat is the newer attempt's
        except Exception as error:
            self._vitals.note(error)
            self._posts.say("failed")
            raise

    @contextmanager
    def _supersession_first(self) -> Iterator[None]:
        """A newer attempt removes our files under way: what fails for that is none of our faults.

        Raises:
            AttemptSupersededError: in place of an error that no one expected.
        """
        try:
            yield
        except TandemError:
            raise
        except Exception as error:
            with suppress(StoreError):
                self._stop_if_superseded(error)
            raise

    def _stop_if_superseded(self, error: Exception) -> None:
        try:
            stop_if_superseded(self._store, self._attempt)
        except AttemptSupersededError as superseded:
            raise superseded from error

    def _record_start(self, report: RestoreReport | None) -> None:
        """Tells people and the run folder how this attempt begins."""
        attempt, step = self._attempt, self._experiment.state.step
        origin = "from the beginning"
        if attempt.resumed_from is not None:
            origin = f"resuming from checkpoint {attempt.resumed_from}"
        elif report is not None:
            origin = f"fine-tuning {report.num_restored} variables of {report.prefix}"
        logger.info(
            "attempt %d of %s, %s; %s steps, batch %d",
            attempt.number,
            self._settings.run,
            origin,
            f"{step} to {self._experiment.last_step}" if self._experiment.last_step else "endless",
            self._experiment.batch_size,
        )
        self._reporter.event(
            "Resumed" if attempt.resumed_from else "Started",
            f"attempt {attempt.number} of {self._settings.run}, {origin}",
        )
        self._reporter.annotate(
            run=self._settings.run,
            attempt=attempt.number,
            target_step=self._experiment.last_step,
        )
        for change in attempt.config_diff:
            logger.info("config changed since attempt %d: %s", attempt.number - 1, change)
        line = read_line(self._store)
        self._metrics.restore_past(
            endings=endings_before(line, attempt.number),
            lost_steps=sum(a.lost_steps for a in line.attempts if a.number <= attempt.number),
        )
        for checkpoint in sorted(c for c in line.damaged if step < c.step):
            logger.warning("checkpoint %s is damaged and left out", checkpoint)
        write_state_file(self._store)
        _put_text(self._store, "pipeline.config", attempt.config_text)
        if report is not None and attempt.resumed_from is None:
            name = f"train/restore-{attempt.number:04d}.json"
            _put_text(self._store, name, json.dumps(json.loads(report.to_json()), indent=2))
        self._metrics.begin(
            attempt=attempt.number, step=step, target_step=self._experiment.last_step
        )
        self._say("restoring")

    def _train(self) -> Exit:
        """Takes the steps, commits the last one and records the outcome."""
        try:
            with self._summaries() as summaries:
                first_step = self._experiment.state.step
                step = self._run_steps(summaries)
                if step > first_step:
                    self._finish_saving()
        except (TrainingError, DataError) as error:
            self._vitals.note(error)
            try:
                self._where.at = _SAVING
                self._saver.settle()
                self._end(Outcome.FAILED, reason=str(error), cause=type(error).__name__)
            except (StoreError, InputError) as failure:  # why training failed is what counts
                logger.error("the end of the attempt is not recorded: %s", failure)
            raise
        last_step = self._experiment.last_step
        if last_step is None or step < last_step:
            self._end(Outcome.PREEMPTED, reason="asked to stop")
            self._reporter.event("Stopped", f"step {step} is committed; started again, it goes on")
            logger.info("stopped after step %d; start again to go on", step)
            return Exit.SAVED_RESUME_ME
        self._end(Outcome.FINISHED)
        self._reporter.event("Finished", f"step {step} is committed")
        logger.info("finished: step %d is committed", step)
        return Exit.FINISHED

    def _finish_saving(self) -> None:
        self._where.at = _SAVING
        began = time.monotonic()
        self._saver.finish()
        self._metrics.count_badput("saving", time.monotonic() - began)

    def _run_steps(self, summaries: Summaries) -> int:
        experiment, settings = self._experiment, self._settings
        step = experiment.state.step
        if experiment.last_step is not None and step >= experiment.last_step:
            if step > experiment.last_step:
                logger.warning(
                    "the run is at step %d already, beyond num_steps %d: nothing is left to train",
                    step,
                    experiment.last_step,
                )
            return step
        self._say("training", step, patience=START_PATIENCE_SECONDS)
        log = ProgressLog(self._pace, last_step=experiment.last_step)
        actions: list[Action] = [
            EveryStep(self._measure),
            EveryStep(lambda facts: self._log_fields.update(step=facts.step)),
            EverySeconds(log, seconds=settings.log_interval, monotonic=time.monotonic),
            EveryNSteps(summaries, n=settings.summary_every_n),
            EveryStep(self._posts.after_step),
            EveryNSteps(self._save, n=settings.checkpoint_every_n),
            EveryStep(self._look_for_failures),
        ]
        return run_steps(
            step,
            last_step=experiment.last_step,
            take_step=experiment.take_step,
            batches=experiment.data(first_step=step).batches(),
            schedule=experiment.schedule,
            actions=actions,
            should_stop=self._stop,
            where=self._where,
            monotonic=time.monotonic,
        )

    def _measure(self, facts: StepFacts) -> None:
        self._pace.add(facts.seconds)
        self._accounting.after_step(facts)
        self._health.beat(
            phase="training", step=facts.step, patience_seconds=self._pace.stall_budget_seconds
        )
        self._reporter.annotate(step=facts.step)
        self._metrics.record_step(
            facts.step,
            losses=facts.losses_by_part,
            learning_rate=facts.learning_rate,
            num_images=facts.num_images,
            seconds=facts.seconds,
            data_seconds=facts.data_seconds,
        )
        pace = self._pace
        if pace.steps_per_second is not None:
            self._metrics.record_rate(
                pace.steps_per_second,
                eta_seconds=pace.eta_seconds(facts.step, self._experiment.last_step),
                stall_budget_seconds=pace.stall_budget_seconds,
                save_interval_seconds=pace.seconds_of(self._settings.checkpoint_every_n),
            )

    def _save(self, facts: StepFacts) -> None:
        self._where.at = _SAVING
        self._saver.after_step(facts)

    def _look_for_failures(self, facts: StepFacts) -> None:
        self._saver.raise_failure()
        self._beats.raise_failure()

    def _wait_for_saves(self, seconds: float) -> None:
        """While the loop waits, it lives; but a wait that has no end is a stall."""
        step = self._experiment.state.step
        self._where.at = _SAVING
        if seconds == 0:
            self._health.beat(phase="saving", step=step, patience_seconds=_SAVE_PATIENCE_SECONDS)
        self._posts.say("saving", step)

    @contextmanager
    def _summaries(self) -> Iterator[Summaries]:
        with (
            files_under_way(self._scratch, self._attempt.number) as scratch,
            EventFolder(
                self._store,
                "train",
                scratch=scratch,
                upload_seconds=_UPLOAD_SECONDS,
                closing_seconds=self._seconds_for_last_upload,
            ) as events,
        ):
            yield Summaries(events, self._pace)

    def _seconds_for_last_upload(self) -> float:
        """The end of the attempt, which is worth more, comes after it."""
        return min(_LAST_UPLOAD_SECONDS, self._saver.seconds_left() / 2)

    def _seconds_for_last_beat(self) -> float:
        return min(_LAST_BEAT_SECONDS, max(_LATE_BEAT_SECONDS, self._saver.seconds_left()))

    def _say(
        self, phase: TrainPhase, step: int | None = None, *, patience: float | None = None
    ) -> None:
        self._metrics.set_phase(phase)
        self._reporter.annotate(phase=phase, step=step)
        self._health.beat(phase=phase, step=step, patience_seconds=patience)
        self._posts.say(phase, step)

    def _end(self, outcome: Outcome, *, reason: str = "", cause: str = "") -> None:
        step = self._saver.committed_step
        self._where.at = _ENDING

        def record() -> None:
            end_attempt(
                self._store,
                self._attempt,
                outcome=outcome,
                reason=reason,
                cause=cause,
                final_step=step,
            )
            write_state_file(self._store)

        self._saver.act_last(record)
        self._say(_PHASES[outcome], self._experiment.state.step)


def _put_text(store: ObjectStore, name: str, text: str) -> None:
    """Writes a file for people, unless it says the same already."""
    found = writing.find(store, name)
    if found is None or found.data != text.encode():
        generation = found.stat.generation if found else None
        writing.replace(store, name, text.encode(), generation=generation)
