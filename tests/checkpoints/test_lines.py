import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.checkpoints.attempts import Attempt, AttemptEnd, Outcome
from tandem.checkpoints.lines import LineReader, checkpoint_listing, line_of, read_line
from tandem.checkpoints.names import CheckpointId, checkpoint_object, parse_checkpoint_id
from tandem.errors import StoreError
from tests.checkpoints.actors import claim
from tests.checkpoints.hooked_store import HookedStore, once


def _attempt(number, resumed_from):
    return Attempt(
        nonce=f"n{number}",
        number=number,
        resumed_from=resumed_from,
        owner="o",
        holder="h",
        image="i",
        config_digest="d",
        config_text="t",
        config_diff=(),
        claimed_at="now",
    )


def _end(number, outcome):
    return AttemptEnd(
        nonce="n", number=number, outcome=outcome, reason="", final_step=None, ended_at="now"
    )


def _line(resumed, committed, ends=None, others=()):
    """resumed: what attempts 1, 2, ... resumed from; committed: ids as text."""
    attempts = {
        number: _attempt(number, parse_checkpoint_id(text) if text else None)
        for number, text in enumerate(resumed, start=1)
    }
    names = [checkpoint_object(parse_checkpoint_id(c), ".commit.json") for c in committed.split()]
    return line_of(
        attempts=attempts,
        ends={number: _end(number, outcome) for number, outcome in (ends or {}).items()},
        listing=checkpoint_listing([*names, *others]),
    )


FINISHED, FAILED = Outcome.FINISHED, Outcome.FAILED


@pytest.mark.parametrize(
    ("resumed", "committed", "ends", "on_line", "head"),
    [
        ([], "", {}, "", None),
        ([None], "", {}, "", None),
        ([None], "1-1 3-1 2-1", {}, "1-1 2-1 3-1", 1),
        # a claim alone changes nothing
        ([None, "1-1"], "1-1 2-1", {}, "1-1 2-1", 1),
        # its first commit does: what the older attempt has beyond the resumption is void
        ([None, "1-1"], "1-1 2-1 3-2", {}, "1-1 3-2", 2),
        ([None, "1-1"], "1-1 2-1 2-2", {}, "1-1 2-2", 2),
        # from nothing
        ([None, None], "1-1 1-2", {}, "1-2", 2),
        # back over an attempt without commits of its own
        ([None, "2-1", "2-1"], "1-1 2-1 3-3", {}, "1-1 2-1 3-3", 3),
        # three deep; what was resumed from may be retired since
        ([None, "2-1", "4-2"], "1-1 3-1 3-2 5-2 5-3", {}, "1-1 3-2 5-3", 3),
        # a finished end without a commit makes a head, a failed one does not
        ([None, "1-1"], "1-1 2-1", {2: FINISHED}, "1-1", 2),
        ([None, "1-1"], "1-1 2-1", {2: FAILED}, "1-1 2-1", 1),
    ],
)
def test_the_line_runs_back_from_the_highest_attempt_that_counts(
    resumed, committed, ends, on_line, head
):
    line = _line(resumed, committed, ends)
    assert [str(c) for c in line.checkpoints] == on_line.split()
    assert line.head == head
    assert {str(c) for c in line.void} == set(committed.split()) - set(on_line.split())


def test_a_line_says_what_is_newest_and_what_can_be_read():
    others = [
        "checkpoints/ckpt-1-1.retire.json",
        "checkpoints/ckpt-3-1.damaged.json",
        "checkpoints/ckpt-9-1.index",
        "checkpoints/checkpoint",
        "checkpoints/unknown",
    ]
    line = _line([None], "1-1 2-1 3-1", {1: FINISHED}, others)
    assert line.newest == line.final == (3, 1)
    assert line.readable == ((2, 1),)
    assert line.newest_sound == (2, 1)
    assert line.retiring == {(1, 1)}
    assert line.damaged == {(3, 1)}
    assert line.uncommitted == {(9, 1)}


@pytest.mark.parametrize("resumed_from", ["5-2", "5-7"])
def test_an_attempt_that_resumed_from_no_earlier_one_is_refused(resumed_from):
    with pytest.raises(StoreError, match=r"attempts/0002\.json"):
        _line([None, resumed_from], "1-2")


@given(st.data())
def test_steps_on_a_line_never_fall_from_attempt_to_attempt(data):
    resumed, committed = [], []
    for number in range(1, data.draw(st.integers(1, 5)) + 1):
        base = data.draw(st.sampled_from([None, *committed]))
        resumed.append(str(base) if base else None)
        first = base.step + 1 if base else 1
        steps = data.draw(st.lists(st.integers(first, first + 4), unique=True, max_size=3))
        committed += [CheckpointId(step, number) for step in steps]
    line = _line(resumed, " ".join(map(str, committed)))
    numbers = [c.attempt for c in line.checkpoints]
    steps = [c.step for c in line.checkpoints]
    assert numbers == sorted(numbers)
    assert len(set(steps)) == len(steps)
    assert bool(line.checkpoints) == bool(committed)


def test_a_reader_that_saw_a_commit_of_an_attempt_it_did_not_lists_again(store, clock, new_trainer):
    hooked = HookedStore(
        store, before=once("list", "checkpoints/", lambda: new_trainer().commit(1))
    )
    assert read_line(hooked).checkpoints == ((1, 1),)


def test_a_commit_whose_attempt_is_missing_is_an_error_that_names_it(store):
    store.create("checkpoints/ckpt-1-3.commit.json", b"")
    with pytest.raises(StoreError, match=r"attempts/0003\.json is missing"):
        read_line(store)


def test_a_reader_reads_each_record_only_once(store, clock):
    claim(store, clock)
    operations = []
    hooked = HookedStore(store, before=lambda operation, name: operations.append(operation))
    reader = LineReader(hooked)
    reader.read()
    operations.clear()
    assert reader.read() == read_line(store)
    assert operations == ["list", "list"]


def test_a_sound_record_under_another_attempts_name_is_damage(store, clock):
    claim(store, clock)
    store.create("attempts/0002.json", store.get("attempts/0001.json").data)
    with pytest.raises(StoreError, match=r"attempts/0002\.json is damaged.*of attempt 1"):
        read_line(store)
