"""The run store's rules, each broken by a small change of the real code, for the test to catch.

A mutant is applied with a `pytest.MonkeyPatch`. It comes with the promises that it breaks: those
that may catch it first, since which one is met first depends on the schedule.
"""

import contextlib
import types
from collections.abc import Callable
from typing import NamedTuple

import services.evaluator.loop
import services.evaluator.recording
import services.trainer.committing
import tests.crash.trainers
from services.trainer.scratch import remove_leftovers
from tandem.checkpoints import (
    attempts,
    claims,
    commits,
    fetching,
    lines,
    names,
    retiring,
    state_file,
    writing,
)
from tandem.checkpoints.leases import Leases, LeaseWatch
from tandem.checkpoints.names import EvalSet
from tandem.checkpoints.pins import pinned_checkpoints
from tandem.checkpoints.records import encode
from tandem.checkpoints.retiring import Retirer
from tandem.errors import GenerationMismatchError, ObjectExistsError, ObjectNotFoundError
from tests.crash import aims
from tests.crash.aims import Aim
from tests.crash.scenarios import LEASE_SECONDS


class Mutant(NamedTuple):
    """A broken rule.

    Attributes:
        apply: breaks it.
        promises: those that this breaks.
        aims: the faults that bring it to light; none for any.
    """

    apply: Callable
    promises: frozenset
    aims: tuple[Aim, ...]


MUTANTS: dict[str, Mutant] = {}


def _breaks(*promises, aims=()):
    def register(apply):
        MUTANTS[apply.__name__] = Mutant(apply, frozenset(promises), aims)
        return apply

    return register


def _nothing(*args, **kwargs):
    return None


def _remove_all_leftovers(scratch, attempt):
    remove_leftovers(scratch, attempt + 1)


# Those that the model of the store knew.


@_breaks("state file")
def state_file_before_commit(patch):
    def create(store, name, data, **kwargs):
        checkpoint = names.parse_checkpoint_object(name).checkpoint
        found = writing.find(store, names.STATE_FILE)
        text = state_file.state_file(
            (*lines.read_line(store).readable, checkpoint), nonce=f"early {name}"
        )
        with contextlib.suppress(GenerationMismatchError):
            generation = found.stat.generation if found else None
            store.replace(names.STATE_FILE, text.encode(), generation=generation)
        return writing.create(store, name, data, **kwargs)

    early = types.SimpleNamespace(create=create, create_from_file=writing.create_from_file)
    patch.setattr(commits, "writing", early)


@_breaks("best", "pin", aims=aims.SKIPS_LATE)
def no_second_look_before_retiring(patch):
    patch.setattr(Retirer, "_is_still_unheld", lambda self, checkpoint: True)


@_breaks("finish")
def no_try_records(patch):
    patch.setattr(services.evaluator.loop, "record_try", lambda *args, **kwargs: 1)


@_breaks("surprise", "once", "bytes")
def names_without_attempt(patch):
    """All lives of the trainer write under the first one's number."""
    real = claims.claim_attempt

    def claim_attempt(store, **kwargs):
        line = lines.read_line(store)
        if not line.attempts:
            return real(store, **kwargs)
        witness = store._witness  # which expects a claim to have an object of its own
        witness.sound_at_claim[1] = line.newest_sound
        return line.attempts[0].model_copy(update={"resumed_from": line.newest_sound})

    def end_attempt(store, attempt, *, outcome, **kwargs):
        if outcome is attempts.Outcome.FINISHED:
            with contextlib.suppress(ObjectExistsError):
                attempts.end_attempt(store, attempt, outcome=outcome, **kwargs)

    patch.setattr(tests.crash.trainers, "claim_attempt", claim_attempt)
    patch.setattr(tests.crash.trainers, "end_attempt", end_attempt)
    patch.setattr(tests.crash.trainers, "remove_leftovers", _remove_all_leftovers)


@_breaks("once")
def replaceable_ledger(patch):
    def record_entry(store, entry, **kwargs):
        name = names.entry_name(entry.checkpoint, EvalSet(entry.eval_set, entry.set_digest))
        found = writing.find(store, name)
        generation = found.stat.generation if found else None
        with contextlib.suppress(GenerationMismatchError):
            writing.replace(store, name, encode(entry), generation=generation, **kwargs)
        return True

    patch.setattr(services.evaluator.recording, "record_entry", record_entry)
    patch.setattr(retiring, "record_entry", record_entry)


@_breaks("state file", "lease", "lost", "best", aims=aims.COMMITS_LATE)
def commits_of_void_attempts_accepted(patch):
    patch.setattr(lines, "_on_line", lambda head, attempts, committed: frozenset(committed))


# Further rules.


@_breaks("lease", aims=aims.SCORES_LATE)
def release_without_generation(patch):
    def release(self, lease):
        with contextlib.suppress(ObjectNotFoundError):
            self._store.delete(lease.name, generation=self._store.stat(lease.name).generation)

    patch.setattr(Leases, "release", release)


@_breaks("lease", aims=aims.LEASES_LATE)
def no_look_for_the_commit_after_leasing(patch):
    patch.setattr(Leases, "_is_worth_reading", lambda self, lease: True)


@_breaks("lease", aims=aims.LEASES_AND_DELETES_LATE)
def intents_ignored_by_readers(patch):
    def is_committed(self, checkpoint):
        name = names.checkpoint_object(checkpoint, names.COMMIT_SUFFIX)
        return name in self._store.list(name)

    patch.setattr(Leases, "_is_committed", is_committed)


@_breaks("lease")
def leases_stale_too_soon(patch):
    real = LeaseWatch.__init__

    def init(self, store, *, lease_seconds, **kwargs):
        real(self, store, lease_seconds=lease_seconds / 10, **kwargs)

    patch.setattr(LeaseWatch, "__init__", init)


@_breaks("lease", aims=aims.DECIDES_LATE)
def no_look_at_leases_after_the_intent(patch):
    def clear(self, checkpoint):
        for name in self._store.list(names.leases_of(checkpoint)):
            with contextlib.suppress(ObjectNotFoundError, GenerationMismatchError):
                self._store.delete(name, generation=self._store.stat(name).generation)
        return True

    patch.setattr(LeaseWatch, "clear", clear)


@_breaks("lost", "state file", aims=aims.COMMITS_LATE)
def data_of_the_head_swept(patch):
    def leftovers(self, line, pinned):
        return [retiring.Swept("data", c) for c in sorted(line.uncommitted - line.retiring)]

    patch.setattr(Retirer, "_leftovers", leftovers)


@_breaks("lost", "state file", aims=aims.COMMITS_LATE_OR_NEVER)
def retiring_before_a_commit_of_ones_own(patch):
    real_claim, real_plan = claims.claim_attempt, Retirer.plan

    def plan(self):
        line = self._lines.read()
        if line.head == self._attempt.number:
            return real_plan(self)
        pinned = pinned_checkpoints(self._store)
        leftovers = tuple(self._leftovers(line, frozenset()))
        return retiring.Plan(unheld=self._unheld(line, pinned=pinned), leftovers=leftovers)

    def claim_attempt(store, *, surroundings, **kwargs):
        attempt = real_claim(store, surroundings=surroundings, **kwargs)
        retirer = Retirer(store, attempt, lease_seconds=LEASE_SECONDS, surroundings=surroundings)
        retirer.run_pass()
        return attempt

    patch.setattr(Retirer, "plan", plan)
    patch.setattr(tests.crash.trainers, "claim_attempt", claim_attempt)


@_breaks("once", aims=aims.READS_ITS_COMMIT_BACK_LATE)
def commit_repeated_without_a_look_at_attempts(patch):
    def create(store, name, data, *, before_again, **kwargs):
        return writing.create(store, name, data, **kwargs)

    careless = types.SimpleNamespace(create=create, create_from_file=writing.create_from_file)
    patch.setattr(commits, "writing", careless)


@_breaks("lost", aims=aims.CLAIMS_LATE)
def no_second_listing_after_a_claim(patch):
    def claim_attempt(
        store, *, owner, holder, image, config_text, config_digest, config_diff, retention,
        eval_sets, surroundings, **kwargs,
    ):  # fmt: skip
        claimant = claims._Claimant(
            owner, holder, image, config_text, config_digest, config_diff, retention, eval_sets,
            lost_steps=lambda attempt, resumed_from: 0,
        )  # fmt: skip
        attempt = claimant.next_attempt(lines.read_line(store), surroundings=surroundings)
        claims._put_claim(store, attempt, surroundings=surroundings)
        return attempt

    patch.setattr(tests.crash.trainers, "claim_attempt", claim_attempt)


@_breaks("state file")
def commit_deleted_before_the_state_file_is_written(patch):
    def carry_out(self, checkpoint):
        if not self._leases.clear(checkpoint) or self._is_kept_by_pin(checkpoint):
            return False
        self._remove(names.checkpoint_object(checkpoint, names.COMMIT_SUFFIX))
        state_file.write_state_file(self._store, surroundings=self._surroundings)
        self._remove_all_but_intent(checkpoint)
        self._remove(names.checkpoint_object(checkpoint, names.INTENT_SUFFIX))
        return True

    patch.setattr(Retirer, "_carry_out", carry_out)


@_breaks("state file", aims=aims.WRITES_THE_STATE_FILE_LATE)
def state_file_listed_before_its_generation_is_read(patch):
    def write_state_file(store, *, lines=None, surroundings):
        lines = lines or state_file.LineReader(store)
        while True:
            readable = lines.read().readable
            found = writing.find(store, names.STATE_FILE)
            if found is None and not readable:
                return
            text = state_file.state_file(readable, nonce=surroundings.nonce())
            generation = found.stat.generation if found else None
            with contextlib.suppress(GenerationMismatchError):
                writing.replace(
                    store,
                    names.STATE_FILE,
                    text.encode(),
                    generation=generation,
                    surroundings=surroundings,
                )
                return

    for module in (retiring, tests.crash.trainers, services.trainer.committing):
        patch.setattr(module, "write_state_file", write_state_file)


@_breaks("ledger")
def no_entry_before_retiring(patch):
    patch.setattr(retiring, "record_entry", _nothing)


@_breaks("lost", aims=aims.READS_LATE)
def retired_taken_for_damaged(patch):
    patch.setattr(fetching, "_raise_if_retired", _nothing)


@_breaks("pin", aims=aims.DECIDES_LATE)
def no_look_at_pins_after_the_intent(patch):
    patch.setattr(Retirer, "_is_kept_by_pin", lambda self, checkpoint: False)


@_breaks("best", "ledger", "pin", aims=aims.COMMITS_LATE)
def no_look_at_attempts_before_the_intent(patch):
    """What is void in an old attempt's eyes is on the line that a newer one has gone on from."""
    patch.setattr(retiring, "stop_if_superseded", _nothing)


# Rules that no promise hangs on: a process that stalls right after such a look does the same as one
# that doesn't look. They spare work, and tell an old attempt early that it is one.


@_breaks(aims=aims.LEASES_LATE_AND_LOOKS_AT_LEASES_LATE)
def no_look_after_a_late_renewal(patch):
    """A stale lease goes by its generation only, so what could be renewed was not yet gone."""

    def renew(self, lease):
        checkpoint, generation = lease.checkpoint, lease.generation
        return self._put(checkpoint, lease.purpose, lease.eval_set, generation=generation)

    patch.setattr(Leases, "renew", renew)


@_breaks(aims=aims.ENDS_LATE)
def no_look_at_attempts_before_the_end(patch):
    """Only the newest attempt's end is the run's."""
    patch.setattr(attempts, "stop_if_superseded", _nothing)
