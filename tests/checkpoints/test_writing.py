import pytest

from tandem.checkpoints import writing
from tandem.errors import (
    AttemptSupersededError,
    GenerationMismatchError,
    ObjectExistsError,
    StoreUnavailableError,
)
from tests.checkpoints.hooked_store import HookedStore, once


def _fail():
    raise StoreUnavailableError("the connection was reset")


def _always(operation_to_fail):
    def hook(operation, name):
        if operation == operation_to_fail:
            _fail()

    return hook


def test_a_create_that_was_applied_but_reported_failed_counts_as_done(store, clock):
    unclear = HookedStore(store, after=once("create", "x", _fail))
    stat = writing.create(unclear, "x", b"mine", surroundings=clock.surroundings)
    assert stat == store.stat("x")
    assert clock.slept == []


def test_a_create_that_did_not_arrive_is_repeated_after_a_pause(store, clock):
    asked = []
    unclear = HookedStore(store, before=once("create", "x", _fail))
    writing.create(
        unclear, "x", b"mine", before_again=lambda: asked.append(1), surroundings=clock.surroundings
    )
    assert store.get("x").data == b"mine"
    assert (clock.slept, asked) == ([0.2], [1])


def test_a_create_whose_own_earlier_effect_shows_up_as_existing_counts_as_done(store, clock):
    store.create("x", b"mine")
    writing.create(store, "x", b"mine", surroundings=clock.surroundings)


def test_a_create_that_meets_another_object_fails(store, clock):
    store.create("x", b"another's")
    with pytest.raises(ObjectExistsError):
        writing.create(store, "x", b"mine", surroundings=clock.surroundings)


def test_an_unclear_create_that_another_won_fails(store, clock):
    def lose():
        store.create("x", b"another's")
        _fail()

    unclear = HookedStore(store, before=once("create", "x", lose))
    with pytest.raises(ObjectExistsError):
        writing.create(unclear, "x", b"mine", surroundings=clock.surroundings)


def test_a_create_is_given_up_at_the_deadline(store, clock):
    unclear = HookedStore(store, before=_always("create"))
    with pytest.raises(StoreUnavailableError):
        writing.create(unclear, "x", b"mine", surroundings=clock.surroundings)
    assert clock.slept == pytest.approx([0.2, 0.4, 0.8, 1.6, 3.2, 6.4, *[10.0] * 4])


def test_what_runs_before_a_repetition_can_stop_it(store, clock):
    def stop():
        raise AttemptSupersededError("a newer attempt")

    unclear = HookedStore(store, before=once("create", "x", _fail))
    with pytest.raises(AttemptSupersededError):
        writing.create(unclear, "x", b"mine", before_again=stop, surroundings=clock.surroundings)
    assert store.list("") == []


@pytest.mark.parametrize("moment", ["before", "after"])
def test_an_unclear_upload_of_a_file_is_settled(store, clock, tmp_path, moment):
    path = tmp_path / "file"
    path.write_bytes(b"data")
    unclear = HookedStore(store, **{moment: once("create_from_file", "x", _fail)})
    stat = writing.create_from_file(unclear, "x", path, surroundings=clock.surroundings)
    assert stat == store.stat("x")


def test_a_file_whose_name_is_taken_by_other_content_fails(store, clock, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"data")
    store.create("x", b"other")
    with pytest.raises(ObjectExistsError):
        writing.create_from_file(store, "x", path, surroundings=clock.surroundings)


def test_a_replace_that_was_applied_but_reported_failed_counts_as_done(store):
    unclear = HookedStore(store, after=once("replace", "x", _fail))
    stat = writing.replace(unclear, "x", b"mine", generation=None)
    assert stat == store.stat("x")


def test_a_replace_that_did_not_arrive_is_repeated_after_a_pause(store, clock):
    first = store.create("x", b"1").generation
    unclear = HookedStore(store, before=once("replace", "x", _fail))
    writing.replace(unclear, "x", b"2", generation=first, surroundings=clock.surroundings)
    assert store.get("x").data == b"2"
    assert clock.slept == [0.2]


def test_a_replace_of_an_absent_object_that_did_not_arrive_is_repeated(store, clock):
    unclear = HookedStore(store, before=once("replace", "x", _fail))
    writing.replace(unclear, "x", b"1", generation=None, surroundings=clock.surroundings)
    assert store.get("x").data == b"1"


def test_an_unclear_replace_that_another_won_is_not_repeated(store, clock):
    first = store.create("x", b"1").generation

    def lose():
        store.replace("x", b"another's", generation=first)
        _fail()

    unclear = HookedStore(store, before=once("replace", "x", lose))
    with pytest.raises(GenerationMismatchError):
        writing.replace(unclear, "x", b"2", generation=first, surroundings=clock.surroundings)
    assert clock.slept == []


def test_a_replace_is_given_up_at_the_deadline(store, clock):
    unclear = HookedStore(store, before=_always("replace"))
    with pytest.raises(StoreUnavailableError):
        writing.replace(unclear, "x", b"1", generation=None, surroundings=clock.surroundings)
    assert clock.now == pytest.approx(52.6)


def test_a_replace_that_another_won_fails(store):
    store.create("x", b"another's")
    with pytest.raises(GenerationMismatchError):
        writing.replace(store, "x", b"mine", generation=None)
