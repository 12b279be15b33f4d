import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.checkpoints.ledger import LedgerView
from tandem.checkpoints.lines import Line
from tandem.checkpoints.names import CheckpointId, EvalSet
from tandem.checkpoints.policies import BestRule, RetentionPolicy
from tandem.checkpoints.retention import (
    Knowledge,
    best_of,
    first_of_each,
    held,
    newest_of,
    to_retire,
    waiting_of,
)
from tests.checkpoints.actors import METRIC, VAL, entry

LOSS = "Loss/total_loss"
DAY = EvalSet("day", "d2")


def _id(step):
    return CheckpointId(step, 1)


def _ids(*steps):
    return frozenset(map(_id, steps))


def _line(steps, *, damaged=(), retiring=()):
    return Line(
        attempts=(),
        ends={},
        head=1,
        checkpoints=tuple(map(_id, steps)),
        void=(),
        retiring=_ids(*retiring),
        damaged=_ids(*damaged),
        uncommitted=frozenset(),
    )


def _ledger(values=None, *, evaluated=(), eval_set=VAL, metric=METRIC):
    scored = tuple(
        entry(_id(step), eval_set=eval_set).model_copy(update={"metrics": {metric: value}})
        for step, value in sorted((values or {}).items())
    )
    return LedgerView(scored, _ids(*(values or {}), *evaluated))


def _kept(line, *, policy=None, best=(), leased=(), pinned=(), evaluated=range(1, 10)):
    knowledge = Knowledge(
        ledgers={VAL: _ledger(dict.fromkeys(best, 0.5), evaluated=evaluated)},
        leased=_ids(*leased),
        pinned=_ids(*pinned),
    )
    kept = held(line, policy or RetentionPolicy(max_to_keep=2, max_unevaluated=0), knowledge)
    gone = to_retire(line, kept)
    return [c.step for c in line.checkpoints if c not in gone]


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({}, [5, 6]),
        ({"best": [2]}, [2, 5, 6]),
        ({"leased": [1]}, [1, 5, 6]),
        ({"pinned": [4, 9]}, [4, 5, 6]),
        ({"best": [3], "leased": [1], "pinned": [2]}, [1, 2, 3, 5, 6]),
    ],
)
def test_the_newest_the_best_the_pinned_and_the_leased_are_kept(options, kept):
    assert _kept(_line(range(1, 7)), **options) == kept


def test_the_newest_of_those_that_wait_for_the_evaluator_are_kept():
    policy = RetentionPolicy(max_to_keep=1, max_unevaluated=2)
    line = _line(range(1, 8))
    assert _kept(line, policy=policy, evaluated=[5, 7]) == [4, 6, 7]
    assert _kept(line, policy=policy, evaluated=range(1, 8)) == [7]


def test_one_that_a_single_set_lacks_waits():
    ledgers = {VAL: _ledger(evaluated=[1, 2, 3]), DAY: _ledger(evaluated=[1, 3])}
    assert waiting_of(_ids(1, 2, 3), 5, ledgers) == _ids(2)
    assert waiting_of(_ids(1, 2, 3), 5, {}) == frozenset()


def test_damaged_checkpoints_go_and_do_not_count_among_the_newest():
    assert _kept(_line(range(1, 7), damaged=[5])) == [4, 6]
    assert _kept(_line(range(1, 7), damaged=[5]), evaluated=()) == [4, 6]


def test_the_newest_is_kept_even_damaged_and_so_is_the_newest_sound_one():
    policy = RetentionPolicy(max_to_keep=1, max_unevaluated=0)
    assert _kept(_line(range(1, 7), damaged=[5, 6]), policy=policy) == [4, 6]


def test_one_that_is_under_way_is_not_decided_again():
    line = _line(range(1, 7), retiring=[1])
    assert _kept(line) == [1, 5, 6]


def test_an_empty_line_keeps_nothing():
    assert _kept(_line([])) == []


def test_newest_of_is_by_step():
    ids = [CheckpointId(10, 1), CheckpointId(9, 3), CheckpointId(2, 1)]
    assert newest_of(ids, 2) == {(10, 1), (9, 3)}
    assert newest_of(ids, 0) == frozenset()
    assert newest_of(ids, 5) == frozenset(ids)


@pytest.mark.parametrize(
    ("steps", "kept"),
    [
        ([100, 200, 300, 400, 500], [200, 400]),
        ([150, 199, 260, 300, 410], [260, 410]),  # none at the multiple itself
        ([199], []),
        ([200, 201, 399], [200]),
        ([1000], [1000]),
    ],
)
def test_the_first_at_or_after_each_multiple_of_some_steps_is_kept(steps, kept):
    assert first_of_each(_ids(*steps), 200) == _ids(*kept)


def test_what_is_kept_every_so_many_steps_stays_so_when_newer_ones_come():
    policy = RetentionPolicy(max_to_keep=1, max_unevaluated=0, keep_every_n_steps=3)
    there = []
    for step in range(1, 12):
        there = _kept(_line([*there, step]), policy=policy, evaluated=range(1, 20))
    assert there == [3, 6, 9, 11]


def test_the_best_by_a_rule_are_the_highest_or_the_lowest_losses():
    ledgers = {
        VAL: _ledger({1: 0.1, 2: 0.9, 3: 0.5, 4: 0.9}),
        DAY: _ledger({1: 3.0, 2: 2.0, 3: 1.0}, eval_set=DAY, metric=LOSS),
    }
    there = _ids(1, 2, 3, 4)
    assert best_of(there, BestRule(), ledgers) == _ids(2)  # of equals the earliest
    assert best_of(there, BestRule(count=3), ledgers) == _ids(2, 3, 4)
    assert best_of(there, BestRule(metric=LOSS, count=2), ledgers) == _ids(2, 3)
    assert best_of(there, BestRule(metric=LOSS, eval_set="val"), ledgers) == frozenset()
    assert best_of(_ids(1, 3), BestRule(), ledgers) == _ids(3)


def test_the_best_of_each_set_stays_whatever_else_is_asked_for():
    ledgers = {VAL: _ledger({1: 0.9, 2: 0.1}), DAY: _ledger({2: 0.8, 3: 0.1}, eval_set=DAY)}
    policy = RetentionPolicy(max_to_keep=1, max_unevaluated=0, keep_best=(BestRule(metric=LOSS),))
    assert held(_line(range(1, 6)), policy, Knowledge(ledgers=ledgers)) == _ids(1, 2, 5)


STEPS = st.sets(st.integers(1, 60), max_size=25)
VALUES = st.dictionaries(st.integers(1, 60), st.floats(0, 1), max_size=25)
RULES = st.lists(
    st.builds(
        BestRule,
        metric=st.sampled_from([METRIC, LOSS]),
        eval_set=st.sampled_from([None, "val", "day"]),
        count=st.integers(1, 4),
    ),
    max_size=3,
)


@given(
    steps=STEPS,
    damaged=STEPS,
    retiring=STEPS,
    pinned=STEPS,
    leased=STEPS,
    val=VALUES,
    day=VALUES,
    max_to_keep=st.integers(1, 9),
    every=st.none() | st.integers(1, 20),
    rules=RULES,
    max_unevaluated=st.integers(0, 9),
)
def test_combined_policies_hold_exactly_the_union_of_what_each_holds(
    steps, damaged, retiring, pinned, leased, val, day, max_to_keep, every, rules, max_unevaluated
):
    line = _line(sorted(steps), damaged=damaged & steps, retiring=retiring & steps)
    ledgers = {VAL: _ledger(val), DAY: _ledger(day, eval_set=DAY, metric=LOSS)}

    def kept(*, pinned=(), leased=(), **options):
        least = {"max_to_keep": 1, "max_unevaluated": 0}
        knowledge = Knowledge(ledgers=ledgers, pinned=_ids(*pinned), leased=_ids(*leased))
        return held(line, RetentionPolicy(**(least | options)), knowledge)

    together = kept(
        pinned=pinned,
        leased=leased,
        max_to_keep=max_to_keep,
        keep_every_n_steps=every,
        keep_best=tuple(rules),
        max_unevaluated=max_unevaluated,
    )
    each = [
        kept(pinned=pinned),
        kept(leased=leased),
        kept(max_to_keep=max_to_keep),
        kept(keep_every_n_steps=every),
        *(kept(keep_best=(rule,)) for rule in rules),
        kept(max_unevaluated=max_unevaluated),
    ]
    assert together == frozenset().union(*each)
    gone = to_retire(line, together)
    assert line.newest not in gone
    assert line.newest_sound not in gone
    assert not best_of(line.readable, BestRule(), ledgers) & set(gone)
    assert not set(gone) & line.retiring
