"""A trainer's life without TensorFlow; its claim, its saves, its retiring and its end are real.

The order is that of `services.trainer.attempt`, whose own parts are used where they need no model.
"""

from services.trainer.committing import Committer
from services.trainer.scratch import remove_leftovers
from tandem.checkpoints.attempts import Outcome, end_attempt
from tandem.checkpoints.claims import claim_attempt
from tandem.checkpoints.fetching import fetch_checkpoint
from tandem.checkpoints.heartbeats import TRAINER, Heartbeat
from tandem.checkpoints.lines import read_line
from tandem.checkpoints.retiring import Retirer
from tandem.checkpoints.runs import ensure_run
from tandem.checkpoints.state_file import write_state_file
from tandem.errors import (
    CheckpointDamagedError,
    ObjectNotFoundError,
    RunConflictError,
    StoreError,
    StoreUnavailableError,
)
from tests.crash.reading import files_at
from tests.crash.scenarios import LEASE_SECONDS

_MAX_FAILURES = 3  # as in services.trainer.saving: so many saves in a row may fail


class Trainer:
    """One life of a trainer: a program for a process.

    Args:
        store: this process's client.
        witness: is told what was read.
        scenario: of the schedule.
        plan: of the job.
        scratch: folder for files under way.
        preempted_after: the step after which it is asked to stop.
    """

    def __init__(self, store, witness, scenario, plan, *, scratch, preempted_after):
        self._store = store
        self._witness = witness
        self._scenario = scenario
        self._plan = plan
        self._scratch = scratch
        self._preempted_after = preempted_after
        self.outcome = None
        self.attempt = None
        self.is_too_late = False

    def __call__(self, process):
        self._process = process
        self._surroundings = process.surroundings
        ensure_run(self._store, surroundings=self._surroundings)
        attempt, commit = self._claim(self._preload())
        self.attempt = attempt
        self._witness.resumes(process, attempt)
        remove_leftovers(self._scratch, attempt.number)
        self._witness.tidied(attempt.number)
        write_state_file(self._store, surroundings=self._surroundings)
        self._heartbeat = Heartbeat(
            self._store, TRAINER, attempt=attempt.number, surroundings=self._surroundings
        )
        self._beat("restoring", None)
        step, outcome = self._train(attempt, commit.checkpoint.step if commit else 0)
        end_attempt(
            self._store,
            attempt,
            outcome=outcome,
            final_step=step,
            surroundings=self._surroundings,
        )
        write_state_file(self._store, surroundings=self._surroundings)
        self._beat(str(outcome), step)
        self.outcome = outcome

    def _preload(self):
        line = read_line(self._store)
        for checkpoint in reversed(line.readable):
            try:
                return self._load(checkpoint, reader=None)
            except (CheckpointDamagedError, ObjectNotFoundError):
                continue
        if line.checkpoints:
            raise RunConflictError("none of the checkpoints is sound")
        return None

    def _claim(self, loaded):
        while True:
            attempt = claim_attempt(
                self._store,
                owner=self._plan.owner,
                holder=self._process.name,
                image="tandem",
                config_text=f"num_steps: {self._scenario.num_steps}",
                config_digest="c0",
                config_diff=lambda before: (),
                retention=self._scenario.retention,
                eval_sets=self._scenario.eval_sets,
                takeover=self._plan.takeover,
                lease_seconds=LEASE_SECONDS,
                on_wait=lambda message: None,
                surroundings=self._surroundings,
            )
            resumed = loaded.checkpoint if loaded else None
            if attempt.resumed_from == resumed:
                return attempt, loaded
            if attempt.resumed_from is None:
                raise StoreError(f"checkpoint {resumed} was there a moment ago")
            try:
                return attempt, self._load(attempt.resumed_from, reader=attempt.holder)
            except CheckpointDamagedError:
                continue  # in quarantine now

    def _load(self, checkpoint, *, reader):
        folder = self._scratch / f".fetched-{self._process.name}"
        try:
            fetched = fetch_checkpoint(
                self._store, checkpoint, folder, reader=reader, surroundings=self._surroundings
            )
        except ObjectNotFoundError:
            self._witness.gone(self._process, checkpoint)
            self.is_too_late = True
            raise
        self._witness.fetched(self._process, checkpoint, files_at(fetched.prefix))
        return fetched.commit

    def _train(self, attempt, step):
        self._committer = Committer(
            self._store,
            attempt,
            retirer=Retirer(
                self._store, attempt, lease_seconds=LEASE_SECONDS, surroundings=self._surroundings
            ),
            scratch=self._scratch,
            surroundings=self._surroundings,
        )
        self._failures = 0
        scenario, saved = self._scenario, step
        while step < scenario.num_steps and step != self._preempted_after:
            self._process.sleep(scenario.step_seconds)
            step += 1
            self._beat("training", step)
            is_due = step % scenario.save_every == 0
            if is_due and self._is_saved(step, is_last=step == scenario.num_steps):
                saved = step
        outcome = Outcome.FINISHED if step >= scenario.num_steps else Outcome.PREEMPTED
        if step > saved:
            self._is_saved(step, is_last=True, retire=outcome is Outcome.FINISHED)
            saved = step
        return (saved if saved or attempt.resumed_from else None), outcome

    def _is_saved(self, step, *, is_last, retire=True):
        """As the trainer's saver does: only the last step's state is tried again."""
        while True:
            try:
                self._put(step)
            except StoreUnavailableError:
                self._failures += 1
                if self._failures == _MAX_FAILURES:
                    raise
                if not is_last:
                    return False
                self._process.sleep(1.0)
                continue
            self._failures = 0
            self._committer.tidy_up(retire=retire)
            return True

    def _put(self, step):
        def write_files(prefix):
            text = f"step {step} of {self._process.name}"
            files = {s: f"{text} {s}".encode() for s in (".index", ".data-00000-of-00001")}
            self._process.files_under_way = files
            for suffix, data in files.items():
                prefix.with_name(prefix.name + suffix).write_bytes(data)

        self._committer.put(step, write_files, samples_seen=8 * step, training_seconds=float(step))

    def _beat(self, phase, step):
        try:
            self._heartbeat.beat(phase, step)
        except StoreUnavailableError:
            return  # as in services.trainer: it must not end the process
