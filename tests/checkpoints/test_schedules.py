"""The schedules that broke an earlier version of the rules, by the numbers of store_schedules.md.

T1 is an older attempt of the trainer that stalls and comes back, T2 a newer one, E1 and E2 are
evaluators. "Meanwhile" is a hook: what others do while the stalled one is about to go on.
"""

import pytest

from tandem.checkpoints.attempts import Outcome, attempt_is_current
from tandem.checkpoints.fetching import fetch_checkpoint
from tandem.checkpoints.ledger import read_entries
from tandem.checkpoints.lines import read_line
from tandem.checkpoints.policies import RetentionPolicy
from tandem.errors import AttemptSupersededError, StoreUnavailableError
from tests.checkpoints.actors import VAL
from tests.checkpoints.hooked_store import HookedStore, once

STATE = "checkpoints/checkpoint"


def _state_names(store):
    return set(store.get(STATE).data.decode().split('"')[1::2])


def test_schedule_1_a_commit_between_listing_and_claim_is_resumed_from(store, new_trainer):
    t1 = new_trainer()
    meanwhile = once("create", r"attempts/0002\.json", lambda: t1.commit(1))
    t2 = new_trainer(claimer=HookedStore(store, before=meanwhile))
    assert meanwhile.state["done"]
    assert (t2.attempt.number, t2.attempt.resumed_from) == (3, (1, 1))
    t2.commit(2)
    line = read_line(store)
    assert (line.checkpoints, line.void) == (((1, 1), (2, 3)), ())


def test_schedule_2_a_run_that_finishes_between_listing_and_claim_stays_finished(
    store, new_trainer
):
    t1 = new_trainer()
    t1.commit(1)

    def finish():
        t1.commit(2)
        t1.finish(2)

    meanwhile = once("create", r"attempts/0002\.json", finish)
    t2 = new_trainer(claimer=HookedStore(store, before=meanwhile))
    assert meanwhile.state["done"]
    assert t2.attempt.resumed_from == (2, 1)
    t2.finish(2)
    line = read_line(store)
    assert line.outcome is Outcome.FINISHED
    assert (line.checkpoints, line.final) == (((1, 1), (2, 1)), (2, 1))


def test_schedule_2_an_attempt_that_was_overtaken_does_not_say_finished(store, new_trainer):
    t1 = new_trainer()
    t1.commit(1)
    t2 = new_trainer()
    with pytest.raises(AttemptSupersededError):
        t1.finish(1)
    assert read_line(store).outcome is None
    t2.commit(2)
    assert read_line(store).checkpoints == ((1, 1), (2, 2))


def test_schedule_3_a_late_release_leaves_the_new_holders_lease(
    store, clock, new_trainer, new_evaluator
):
    checkpoint = new_trainer().commit(1)
    e1, e2 = new_evaluator("e1"), new_evaluator("e2")
    stalled = e1.acquire(checkpoint)
    assert e2.acquire(checkpoint) is None
    clock.now += 60
    taken = e2.acquire(checkpoint)
    e1.leases.release(stalled)
    assert e2.leases.renew(taken) is not None


@pytest.mark.parametrize("operation", ["list", "create"])
def test_schedule_4_one_that_becomes_the_best_meanwhile_stays(
    store, clock, new_trainer, new_evaluator, operation
):
    t1 = new_trainer(policy=RetentionPolicy(max_to_keep=1, max_unevaluated=0))
    first = t1.save(1)
    t1.save(2)
    meanwhile = once(operation, "evaluations/val/", lambda: new_evaluator("e").score(first, 0.9))
    t1.retirer_on(HookedStore(store, before=meanwhile)).run_pass()
    assert meanwhile.state["done"]
    line = read_line(store)
    assert first in line.readable
    assert [e.metrics for e in read_entries(store, VAL) if e.checkpoint == first] != [{}]


def test_schedule_4_a_score_that_comes_after_skipped_is_refused(store, new_trainer, new_evaluator):
    t1 = new_trainer()
    first = t1.save(1)
    t1.save(2)
    scored = []
    meanwhile = once(
        "create", "retire", lambda: scored.append(new_evaluator("e").score(first, 0.9))
    )
    t1.retirer_on(HookedStore(store, before=meanwhile)).run_pass()
    assert scored == [False]
    assert read_line(store).checkpoints == ((2, 1),)
    assert len([e for e in read_entries(store, VAL) if e.checkpoint == first]) == 1


def test_schedule_5_an_intent_is_never_taken_back_and_nobody_leases_under_it(
    store, clock, new_trainer, new_evaluator
):
    t1 = new_trainer()
    e1, e2 = new_evaluator("e1"), new_evaluator("e2")
    first = t1.save(1)
    leased = []
    meanwhile = once("create", "retire", lambda: leased.append(e1.leases.acquire(first, "export")))
    t1.save(2)
    done = t1.retirer_on(HookedStore(store, before=meanwhile)).run_pass()
    assert done[:2] == ((), (first,))
    t2 = new_trainer()
    t2.save(3)
    assert t2.retire().waiting == (first,)  # of T1, kept by E1's lease alone
    assert e2.leases.acquire(first, "other") is None
    fetch_checkpoint(store, first, t1.folder / "cache", reader=None)  # E1 still reads it
    assert first not in read_line(store).readable
    e1.leases.release(leased[0])
    assert first in t2.retire().retired


def test_schedule_6_a_renewal_before_the_intent_keeps_a_lease_that_looked_stale(
    store, clock, new_trainer, new_evaluator
):
    t1, e1 = new_trainer(), new_evaluator("e1")
    first = t1.save(1)
    lease = e1.leases.acquire(first, "export")
    t1.save(2)
    renewed = []
    meanwhile = once("create", "retire", lambda: renewed.append(e1.leases.renew(lease)))
    retirer = t1.retirer_on(HookedStore(store, before=meanwhile))
    retirer.run_pass()
    clock.now += 60
    assert retirer.run_pass()[:2] == ((), (first,))
    assert renewed[0] is not None
    fetch_checkpoint(store, first, t1.folder / "cache", reader=None)


def test_schedule_6_a_late_renewal_after_the_intent_is_a_lost_lease(
    store, clock, new_trainer, new_evaluator
):
    t1, e1 = new_trainer(), new_evaluator("e1")
    first = t1.save(1)
    lease = e1.leases.acquire(first, "export")
    t1.save(2)
    renewed = []
    meanwhile = once("delete", "leases/", lambda: renewed.append(e1.leases.renew(lease)))
    retirer = t1.retirer_on(HookedStore(store, before=meanwhile))
    retirer.run_pass()
    clock.now += 60
    retirer.run_pass()
    assert renewed == [None]
    assert retirer.run_pass().retired in {(first,), ()}
    assert store.list("leases/") == []


def _with_void_commit_in_the_state_file(store, new_trainer):
    t1 = new_trainer()
    t1.save(1)
    t2s = []
    meanwhile = once("create", r"ckpt-2-1\.commit", lambda: t2s.append(new_trainer()))
    t1.commit(2, store=HookedStore(store, before=meanwhile))
    t1.write_state_file()
    t2 = t2s[0]
    assert _state_names(store) == {"ckpt-1-1", "ckpt-2-1"}
    t2.commit(3)
    assert read_line(store).void == ((2, 1),)
    return t1, t2


def test_schedule_7_a_void_commit_goes_only_after_the_state_file_has_dropped_it(store, new_trainer):
    _, t2 = _with_void_commit_in_the_state_file(store, new_trainer)
    seen = []
    meanwhile = once("delete", r"ckpt-2-1\.commit", lambda: seen.append(_state_names(store)))
    t2.retirer_on(HookedStore(store, before=meanwhile)).run_pass()
    assert len(seen) == 1
    assert "ckpt-2-1" not in seen[0]
    assert not any("ckpt-2-1" in name for name in store.list("checkpoints/"))


def test_schedule_7_a_state_file_of_an_old_listing_is_never_put_over_a_newer_one(
    store, new_trainer
):
    t1, t2 = _with_void_commit_in_the_state_file(store, new_trainer)
    meanwhile = once("replace", STATE, t2.retire)
    t1.write_state_file(store=HookedStore(store, before=meanwhile))
    assert meanwhile.state["done"]
    assert _state_names(store) == {f"ckpt-{c}" for c in read_line(store).checkpoints}


def test_schedule_8_a_commit_whose_data_were_swept_is_void(store, new_trainer):
    t1 = new_trainer()
    t1.save(1)
    t2s = []

    def take_over():
        t2s.append(new_trainer())
        t2s[0].save(3)
        t2s[0].retire()

    late = t1.commit(
        2, store=HookedStore(store, before=once("create", r"ckpt-2-1\.commit", take_over))
    )
    line = read_line(store)
    assert late in line.void
    assert line.checkpoints == ((3, 2),)
    assert t2s[0].retire().retired == (late,)
    assert not any("ckpt-2-1" in name for name in store.list("checkpoints/"))


def test_schedule_9_a_retired_commit_is_not_brought_back_by_a_late_repetition(store, new_trainer):
    t1 = new_trainer()

    def retire_and_lose_the_answer():
        t2 = new_trainer()
        t2.save(2)
        assert (1, 1) in t2.retire().retired
        raise StoreUnavailableError("the connection was reset")

    lossy = HookedStore(
        store, after=once("create", r"ckpt-1-1\.commit", retire_and_lose_the_answer)
    )
    with pytest.raises(AttemptSupersededError):
        t1.commit(1, store=lossy)
    assert not any("ckpt-1-1" in name for name in store.list("checkpoints/"))


def test_schedule_10_the_next_attempt_writes_the_state_file_of_the_final_commit(store, new_trainer):
    t1 = new_trainer()
    t1.save(1)
    t1.commit(2)  # the final one, and a crash
    assert _state_names(store) == {"ckpt-1-1"}
    t2 = new_trainer()
    assert t2.attempt.resumed_from == (2, 1)
    t2.finish(2)
    assert _state_names(store) == {"ckpt-1-1", "ckpt-2-1"}
    assert read_line(store).final == (2, 1)


def test_schedule_11_nothing_is_retired_before_a_commit_of_ones_own(store, new_trainer):
    t1 = new_trainer(policy=RetentionPolicy(max_to_keep=9))
    for step in (1, 2):
        t1.save(step)
    store.create("checkpoints/ckpt-3-1.index", b"")
    before = store.list("")
    t2 = new_trainer(policy=RetentionPolicy(max_to_keep=1, max_unevaluated=0))
    assert t2.retire()[:2] == ((), ())
    assert store.list("") == sorted([*before, "attempts/0002.json"])
    assert attempt_is_current(store, t2.attempt)
