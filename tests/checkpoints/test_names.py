import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.checkpoints import names
from tandem.checkpoints.names import CheckpointId, EvalSet

ID = CheckpointId(1000, 2)


def test_objects_are_called_as_the_design_says():
    val = EvalSet("val", "0123456789ab")
    assert names.attempt_name(2) == "attempts/0002.json"
    assert names.end_name(2) == "attempts/0002.end.json"
    assert names.checkpoint_object(ID, ".commit.json") == "checkpoints/ckpt-1000-2.commit.json"
    assert names.lease_name(ID, "val") == "leases/ckpt-1000-2/val.json"
    assert names.entry_name(ID, val) == "evaluations/val/1000-2-0123456789ab.json"
    assert names.try_name(ID, val, 1) == "evaluations/val/1000-2-0123456789ab.try-1.json"
    assert names.best_name("val") == "best/val.json"
    assert names.heartbeat_name("evaluator-a") == "heartbeats/evaluator-a.json"


def test_the_set_without_a_name_has_folders_of_its_own():
    assert names.entries_of("") == "evaluations/@unnamed/"
    assert names.best_name("") == "best/@unnamed.json"
    assert names.events_folder("") == "eval"
    assert names.events_folder("val") == "eval_val"


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("val-2.0_b", "val-2.0_b"),
        ("a/b", "a%2Fb"),
        ("..", "%2E."),
        ("@unnamed", "%40unnamed"),
        ("é", "%C3%A9"),
        ("100%", "100%25"),
        ("~", "%7E"),
    ],
)
def test_other_characters_of_a_name_are_escaped(name, safe):
    assert names.path_safe(name) == safe


@given(st.text(max_size=200))
def test_a_safe_name_is_one_part_of_a_path(name):
    safe = names.path_safe(name)
    assert 0 < len(safe) <= 100
    assert "/" not in safe
    assert not safe.startswith(".")


@given(st.text(max_size=120), st.text(max_size=120))
def test_different_names_stay_different(one, other):
    assert (names.path_safe(one) == names.path_safe(other)) == (one == other)


def test_long_names_that_begin_alike_stay_different():
    assert names.path_safe("x" * 200) != names.path_safe("x" * 201)


@given(st.integers(0, 10**9), st.integers(1, 10**6))
def test_ids_and_names_say_what_they_were_made_from(step, attempt):
    checkpoint = CheckpointId(step, attempt)
    assert names.parse_checkpoint_id(str(checkpoint)) == checkpoint
    assert names.parse_attempt_object(names.attempt_name(attempt)) == (attempt, False)
    assert names.parse_attempt_object(names.end_name(attempt)) == (attempt, True)
    data = names.checkpoint_object(checkpoint, ".data-00000-of-00001")
    assert names.parse_checkpoint_object(data) == (checkpoint, ".data-00000-of-00001")
    assert names.parse_lease(names.lease_name(checkpoint, "export")) == checkpoint
    val = EvalSet("val-x.try-1", "0123456789ab")
    assert names.parse_entry(names.entry_name(checkpoint, val)) == (checkpoint, val.digest, None)
    assert names.parse_entry(names.try_name(checkpoint, val, 3)) == (checkpoint, val.digest, 3)


@pytest.mark.parametrize(
    "name",
    [
        "checkpoints/checkpoint",
        "checkpoints/ckpt-0.index",
        "checkpoints/ckpt-007-1.index",
        "checkpoints/ckpt-\u0661-1.index",
        "checkpoints/model.ckpt-5.index",
        "x",
    ],
)
def test_names_of_other_programs_say_nothing(name):
    assert names.parse_checkpoint_object(name) is None


def test_an_id_that_is_none_is_refused():
    with pytest.raises(ValueError, match="1000-2"):
        names.parse_checkpoint_id("1000")


def test_ids_are_ordered_by_step():
    assert sorted([CheckpointId(20, 1), CheckpointId(3, 2)]) == [(3, 2), (20, 1)]
