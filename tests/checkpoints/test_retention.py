import pytest

from tandem.checkpoints.lines import Line
from tandem.checkpoints.names import CheckpointId
from tandem.checkpoints.retention import RetentionPolicy, held, newest_of, to_retire
from tandem.errors import ConfigError


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


def _kept(line, *, policy=None, best=(), leased=(), evaluated=range(1, 10)):
    kept = held(
        line,
        policy or RetentionPolicy(max_to_keep=2, max_unevaluated=0),
        best=_ids(*best),
        leased=_ids(*leased),
        evaluated=_ids(*evaluated),
    )
    gone = to_retire(line, kept)
    return [c.step for c in line.checkpoints if c not in gone]


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({}, [5, 6]),
        ({"best": [2]}, [2, 5, 6]),
        ({"leased": [1]}, [1, 5, 6]),
        ({"best": [3, 6], "leased": [1]}, [1, 3, 5, 6]),
    ],
)
def test_the_newest_the_best_and_the_leased_are_kept(options, kept):
    assert _kept(_line(range(1, 7)), **options) == kept


def test_the_newest_of_those_that_wait_for_the_evaluator_are_kept():
    policy = RetentionPolicy(max_to_keep=1, max_unevaluated=2)
    line = _line(range(1, 8))
    assert _kept(line, policy=policy, evaluated=[5, 7]) == [4, 6, 7]
    assert _kept(line, policy=policy, evaluated=range(1, 8)) == [7]


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


def test_the_defaults_are_those_of_the_object_detection_api_and_the_design():
    policy = RetentionPolicy()
    assert (policy.max_to_keep, policy.max_unevaluated) == (7, 20)
    assert policy.best_metric == "DetectionBoxes_Precision/mAP"


@pytest.mark.parametrize("wrong", [{"max_to_keep": 0}, {"max_unevaluated": -1}])
def test_nonsense_is_refused(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        RetentionPolicy(**wrong)


def test_newest_of_is_by_step():
    ids = [CheckpointId(10, 1), CheckpointId(9, 3), CheckpointId(2, 1)]
    assert newest_of(ids, 2) == {(10, 1), (9, 3)}
    assert newest_of(ids, 0) == frozenset()
    assert newest_of(ids, 5) == frozenset(ids)
