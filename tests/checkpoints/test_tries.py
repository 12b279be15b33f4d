from tandem.checkpoints.names import CheckpointId, EvalSet
from tandem.checkpoints.tries import MAX_TRIES, read_tries, record_try
from tests.checkpoints.actors import VAL
from tests.checkpoints.hooked_store import HookedStore, once

ONE = CheckpointId(1, 1)


def _begin(store, clock, checkpoint=ONE, eval_set=VAL, **kwargs):
    return record_try(
        store, checkpoint, eval_set, recorder="e", surroundings=clock.surroundings, **kwargs
    )


def test_three_tries_may_begin(store, clock):
    assert [_begin(store, clock) for _ in range(5)] == [1, 2, 3, None, None]
    assert MAX_TRIES == 3


def test_why_a_try_failed_is_kept_by_the_next_one(store, clock):
    _begin(store, clock)
    _begin(store, clock, last_failure="record 7 of val.record is cut")
    assert [(t.number, t.last_failure) for t in read_tries(store, ONE, VAL)] == [
        (1, ""),
        (2, "record 7 of val.record is cut"),
    ]


def test_tries_of_other_checkpoints_and_sets_do_not_count(store, clock):
    assert _begin(store, clock, checkpoint=CheckpointId(1, 10)) == 1
    assert _begin(store, clock, checkpoint=CheckpointId(11, 1)) == 1
    assert _begin(store, clock, eval_set=EvalSet("val", "d10")) == 1
    assert _begin(store, clock) == 1


def test_a_try_that_another_began_meanwhile_counts_too(store, clock):
    late = HookedStore(store, before=once("create", "try-1", lambda: _begin(store, clock)))
    assert _begin(late, clock) == 2
