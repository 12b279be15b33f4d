"""Trainers and evaluators of the run store's tests, with a clock that only they move."""

import itertools
from datetime import datetime, timezone

from tandem.checkpoints.attempts import Outcome, end_attempt
from tandem.checkpoints.claims import claim_attempt
from tandem.checkpoints.commits import commit_checkpoint
from tandem.checkpoints.leases import Leases
from tandem.checkpoints.ledger import EntryOutcome, LedgerEntry, record_entry
from tandem.checkpoints.names import EvalSet
from tandem.checkpoints.policies import RetentionPolicy
from tandem.checkpoints.retiring import Retirer
from tandem.checkpoints.state_file import write_state_file
from tandem.checkpoints.surroundings import Surroundings

VAL = EvalSet("val", "d1")
METRIC = "DetectionBoxes_Precision/mAP"


class FakeClock:
    def __init__(self):
        self.now = 0.0
        self.slept = []
        self._nonces = itertools.count()

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds

    @property
    def surroundings(self):
        return Surroundings(
            monotonic=lambda: self.now,
            sleep=self.sleep,
            utc_now=lambda: datetime(2026, 1, 31, 12, tzinfo=timezone.utc),
            nonce=lambda: f"nonce-{next(self._nonces)}",
            random=lambda: 0.0,
        )


def write_local_checkpoint(folder, *, content):
    """A stand-in for what TensorFlow writes; returns its prefix."""
    folder.mkdir(parents=True, exist_ok=True)
    for suffix in (".index", ".data-00000-of-00001"):
        path = folder / f"saved{suffix}"
        path.unlink(missing_ok=True)
        path.write_bytes(f"{content}{suffix}".encode() * 10)
    return folder / "saved"


def claim(store, clock, *, owner="job-1", holder="host:1", **kwargs):
    return claim_attempt(
        store,
        owner=owner,
        holder=holder,
        image="tandem",
        config_text="num_steps: 5",
        config_digest="c0",
        config_diff=lambda old: [f"was {old}"],
        surroundings=clock.surroundings,
        **kwargs,
    )


def entry(
    checkpoint, *, metric=None, outcome=EntryOutcome.SCORED, eval_set=VAL, nonce="n", **kwargs
):
    return LedgerEntry(
        nonce=nonce,
        checkpoint=checkpoint,
        eval_set=eval_set.name,
        set_digest=eval_set.digest,
        outcome=outcome,
        metrics={} if metric is None else {METRIC: metric},
        recorded_by="evaluator",
        recorded_at="now",
        **kwargs,
    )


class Trainer:
    """A trainer that has claimed an attempt."""

    def __init__(self, store, clock, folder, *, claimer=None, policy=None, sets=(VAL,), **kwargs):
        self.store, self.clock, self.folder = store, clock, folder
        policy = policy or RetentionPolicy(max_to_keep=1, max_unevaluated=0)
        self.attempt = claim(claimer or store, clock, retention=policy, eval_sets=sets, **kwargs)
        self.retirer = self.retirer_on(store)

    def retirer_on(self, store):
        return Retirer(store, self.attempt, surroundings=self.clock.surroundings)

    def commit(self, step, *, store=None):
        prefix = write_local_checkpoint(
            self.folder / f"attempt-{self.attempt.number}", content=f"{step}-{self.attempt.number}"
        )
        return commit_checkpoint(
            store or self.store,
            self.attempt,
            step=step,
            local_prefix=prefix,
            config_digest="c0",
            samples_seen=step * 8,
            training_seconds=float(step),
            surroundings=self.clock.surroundings,
        ).checkpoint

    def save(self, step):
        checkpoint = self.commit(step)
        self.write_state_file()
        return checkpoint

    def write_state_file(self, *, store=None):
        write_state_file(store or self.store, surroundings=self.clock.surroundings)

    def retire(self):
        return self.retirer.run_pass()

    def finish(self, step):
        end = end_attempt(
            self.store,
            self.attempt,
            outcome=Outcome.FINISHED,
            final_step=step,
            surroundings=self.clock.surroundings,
        )
        self.write_state_file()
        return end


class Evaluator:
    """An evaluator with its leases."""

    def __init__(self, store, clock, name):
        self.store, self.clock, self.name = store, clock, name
        self.leases = Leases(store, holder=name, surroundings=clock.surroundings)

    def acquire(self, checkpoint):
        return self.leases.acquire(checkpoint, VAL.name, eval_set=VAL)

    def score(self, checkpoint, metric):
        return record_entry(
            self.store, entry(checkpoint, metric=metric), surroundings=self.clock.surroundings
        )
