import pytest

from tandem.checkpoints.leases import Leases, LeaseWatch
from tandem.checkpoints.names import CheckpointId
from tandem.errors import StoreUnavailableError
from tests.checkpoints.actors import Evaluator
from tests.checkpoints.hooked_store import HookedStore, once

NAME = "leases/ckpt-1-1/val.json"


@pytest.fixture
def checkpoint(new_trainer):
    return new_trainer().commit(1)


def test_a_lease_keeps_others_from_the_same_work(store, checkpoint, new_evaluator):
    one, other = new_evaluator("e1"), new_evaluator("e2")
    lease = one.acquire(checkpoint)
    assert other.acquire(checkpoint) is None
    assert other.leases.acquire(checkpoint, "export") is not None
    one.leases.release(lease)
    assert other.acquire(checkpoint) is not None


def test_a_released_lease_is_gone(store, checkpoint, new_evaluator):
    one = new_evaluator("e1")
    lease = one.leases.renew(one.acquire(checkpoint))
    one.leases.release(lease)
    assert store.list("leases/") == []


def test_a_stale_lease_is_taken_over_after_watching_it_for_a_minute(
    store, clock, checkpoint, new_evaluator
):
    lost = new_evaluator("e1")
    lease = lost.acquire(checkpoint)
    other = new_evaluator("e2")
    clock.now = 1000  # this observer has not seen it yet, so how old it is it can't know
    assert other.acquire(checkpoint) is None
    clock.now = 1059
    assert other.acquire(checkpoint) is None
    clock.now = 1060
    taken = other.acquire(checkpoint)
    assert taken is not None
    assert lost.leases.renew(lease) is None


def test_a_renewed_lease_stays_fresh(store, clock, checkpoint, new_evaluator):
    one, other = new_evaluator("e1"), new_evaluator("e2")
    lease = one.acquire(checkpoint)
    for _ in range(10):
        assert other.acquire(checkpoint) is None
        clock.now += 30
        lease = one.leases.renew(lease)
        assert lease is not None


def test_of_two_that_take_a_stale_lease_over_at_once_one_wins(
    store, clock, checkpoint, new_evaluator
):
    new_evaluator("dead").acquire(checkpoint)
    faster = new_evaluator("e1")
    won = []
    meanwhile = once("replace", NAME, lambda: won.append(faster.acquire(checkpoint)))
    slower = Evaluator(HookedStore(store, before=meanwhile), clock, "e2")
    assert [faster.acquire(checkpoint), slower.acquire(checkpoint)] == [None, None]
    clock.now += 60
    assert slower.acquire(checkpoint) is None
    assert faster.leases.renew(won[0]) is not None


@pytest.mark.parametrize("what", ["no commit", "intent", "entry"])
def test_a_lease_on_what_needs_no_reading_is_given_back(
    store, clock, checkpoint, new_evaluator, what
):
    evaluator = new_evaluator("e1")
    if what == "no commit":
        checkpoint = CheckpointId(9, 1)
    elif what == "intent":
        store.create("checkpoints/ckpt-1-1.retire.json", b"{}")
    else:
        evaluator.score(checkpoint, 0.5)
    assert evaluator.acquire(checkpoint) is None
    assert store.list("leases/") == []


def test_an_entry_is_no_reason_to_give_back_a_lease_for_something_else(
    store, checkpoint, new_evaluator
):
    evaluator = new_evaluator("e1")
    evaluator.score(checkpoint, 0.5)
    assert evaluator.leases.acquire(checkpoint, "export") is not None


@pytest.mark.parametrize(("seconds", "is_lost"), [(59, False), (60, True)])
def test_only_a_late_renewal_looks_again(store, clock, checkpoint, new_evaluator, seconds, is_lost):
    evaluator = new_evaluator("e1")
    lease = evaluator.acquire(checkpoint)
    store.create("checkpoints/ckpt-1-1.retire.json", b"{}")
    clock.now += seconds
    assert (evaluator.leases.renew(lease) is None) == is_lost
    assert (store.list("leases/") == []) == is_lost


@pytest.mark.parametrize(("told", "renews_after"), [(20, 5), (60, 15), (600, 15)])
def test_a_lease_is_renewed_well_within_the_minute_that_trainers_respect(
    store, clock, checkpoint, told, renews_after
):
    leases = Leases(store, holder="e", lease_seconds=told, surroundings=clock.surroundings)
    assert leases.renew_seconds == renews_after
    lease = leases.acquire(checkpoint, "val")
    trainers = LeaseWatch(store, lease_seconds=60, surroundings=clock.surroundings)
    for _ in range(10):
        assert trainers.live_checkpoints() == {checkpoint}
        clock.now += leases.renew_seconds
        lease = leases.renew(lease)
    assert lease is not None


def test_a_renewal_that_trainers_may_find_late_looks_again(store, clock, checkpoint):
    leases = Leases(store, holder="e", lease_seconds=600, surroundings=clock.surroundings)
    lease = leases.acquire(checkpoint, "val")
    store.create("checkpoints/ckpt-1-1.retire.json", b"{}")
    clock.now += 60
    assert leases.renew(lease) is None


def test_a_lost_lease_says_who_has_it_or_that_it_was_taken_for_stale(
    store, clock, checkpoint, new_evaluator
):
    evaluator = new_evaluator("e1")
    lease = evaluator.acquire(checkpoint)
    watch = LeaseWatch(store, lease_seconds=60, surroundings=clock.surroundings)
    watch.clear(checkpoint)
    clock.now += 60
    assert watch.clear(checkpoint)
    assert evaluator.leases.renew(lease) is None
    assert "taken for stale and removed" in evaluator.leases.why_lost(lease)
    assert new_evaluator("e2").acquire(checkpoint)
    assert evaluator.leases.why_lost(lease) == "e2 has taken its lease over"


def test_a_release_that_the_store_does_not_answer_leaves_the_lease_to_go_stale(
    store, clock, checkpoint
):
    def fail(operation, name):
        if operation == "delete":
            raise StoreUnavailableError("no answer")

    evaluator = Evaluator(HookedStore(store, before=fail), clock, "e1")
    evaluator.leases.release(evaluator.acquire(checkpoint))
    assert store.list("leases/") == [NAME]


def test_the_watch_of_whoever_retires_tells_live_from_stale(
    store, clock, checkpoint, new_evaluator
):
    new_evaluator("dead").acquire(checkpoint)
    watch = LeaseWatch(store, lease_seconds=60, surroundings=clock.surroundings)
    assert watch.live_checkpoints() == {checkpoint}
    assert not watch.clear(checkpoint)
    clock.now = 60
    assert watch.live_checkpoints() == frozenset()
    assert watch.clear(checkpoint)
    assert store.list("leases/") == []


def test_a_stale_lease_that_is_renewed_at_the_last_moment_is_not_cleared(
    store, clock, checkpoint, new_evaluator
):
    evaluator = new_evaluator("e1")
    lease = evaluator.acquire(checkpoint)

    def renew(operation, name):
        if operation == "delete":
            evaluator.leases.renew(lease)

    watch = LeaseWatch(
        HookedStore(store, before=renew), lease_seconds=60, surroundings=clock.surroundings
    )
    watch.clear(checkpoint)
    clock.now = 60
    assert not watch.clear(checkpoint)
    assert store.list("leases/") == [NAME]
