import pytest

from tandem.checkpoints.lines import read_line
from tandem.checkpoints.names import CheckpointId
from tandem.checkpoints.pins import is_pinned, pin, pinned_checkpoints, read_pins, unpin
from tandem.errors import RunConflictError
from tests.checkpoints.hooked_store import HookedStore


def _pin(store, checkpoint, *, reason="release 3"):
    return pin(store, checkpoint, reason=reason, by="ann@desk")


def _objects_of(store, checkpoint):
    return store.list(f"checkpoints/ckpt-{checkpoint}.")


def test_a_pin_says_who_wanted_the_checkpoint_and_why(store, new_trainer):
    first = new_trainer().save(1)
    assert _pin(store, first)
    assert pinned_checkpoints(store) == {first}
    assert is_pinned(store, first)
    found = read_pins(store)[first]
    assert (found.reason, found.pinned_by) == ("release 3", "ann@desk")


def test_a_second_pin_changes_nothing(store, new_trainer):
    first = new_trainer().save(1)
    _pin(store, first)
    assert not _pin(store, first, reason="other")
    assert read_pins(store)[first].reason == "release 3"


def test_unpinning_says_whether_there_was_a_pin(store, new_trainer):
    first = new_trainer().save(1)
    _pin(store, first)
    assert unpin(store, first)
    assert not unpin(store, first)
    assert pinned_checkpoints(store) == frozenset()


def test_a_checkpoint_that_is_gone_can_not_be_pinned(store, new_trainer):
    trainer = new_trainer()
    first = trainer.save(1)
    trainer.save(2)
    trainer.retire()
    with pytest.raises(RunConflictError, match=r"1-1 .* is gone"):
        _pin(store, first)
    assert store.list("pins/") == []


def test_a_checkpoint_that_is_being_retired_can_not_be_pinned(store, new_trainer):
    first = new_trainer().save(1)
    store.create(f"checkpoints/ckpt-{first}.retire.json", b"{}")
    with pytest.raises(RunConflictError, match="is being retired"):
        _pin(store, first)
    assert store.list("pins/") == []


def test_a_pinned_checkpoint_is_not_retired_until_it_is_unpinned(store, new_trainer):
    trainer = new_trainer()
    first = trainer.save(1)
    trainer.save(2)
    _pin(store, first)
    assert trainer.retire().retired == ()
    unpin(store, first)
    assert trainer.retire().retired == (first,)


def test_a_pin_that_comes_just_before_the_intent_keeps_the_checkpoint_readable(store, new_trainer):
    trainer = new_trainer()
    first = trainer.save(1)
    trainer.save(2)

    def pin_it(operation, name):
        if operation == "create" and name.startswith("evaluations/"):
            _pin(store, first)

    done = trainer.retirer_on(HookedStore(store, before=pin_it)).run_pass()
    assert (done.retired, done.waiting) == ((), ())
    assert first in read_line(store).readable


def test_a_pin_that_comes_between_the_last_look_and_the_intent_keeps_the_data(store, new_trainer):
    trainer = new_trainer()
    first = trainer.save(1)
    trainer.save(2)

    def pin_it(operation, name):
        if operation == "create" and name.endswith(".retire.json"):
            _pin(store, first)

    done = trainer.retirer_on(HookedStore(store, before=pin_it)).run_pass()
    assert (done.retired, done.waiting) == ((), (first,))
    assert len(_objects_of(store, first)) == 4  # with the intent, which is never taken back
    assert trainer.retire().waiting == (first,)
    unpin(store, first)
    assert trainer.retire().retired == (first,)
    assert _objects_of(store, first) == []


def test_a_pin_that_comes_after_the_intent_is_taken_back(store, new_trainer):
    trainer = new_trainer()
    first = trainer.save(1)
    trainer.save(2)
    refusals = []

    def pin_it(operation, name):
        if operation == "create" and name.endswith(".retire.json"):
            with pytest.raises(RunConflictError) as refusal:
                _pin(store, first)
            refusals.append(str(refusal.value))

    done = trainer.retirer_on(HookedStore(store, after=pin_it)).run_pass()
    assert len(refusals) == 1
    assert done.retired == (first,)
    assert store.list("pins/") == []


def test_when_the_commit_is_gone_a_pin_does_not_hold_up_the_rest(store, new_trainer):
    trainer = new_trainer()
    first = trainer.save(1)
    trainer.save(2)
    _pin(store, first)
    store.create(f"checkpoints/ckpt-{first}.retire.json", b"{}")
    commit = store.stat(f"checkpoints/ckpt-{first}.commit.json")
    store.delete(commit.name, generation=commit.generation)
    assert trainer.retire().retired == (first,)
    assert _objects_of(store, first) == []


def test_a_pinned_commit_off_the_line_stays(store, clock, new_trainer):
    stalled = new_trainer()
    stalled.save(1)
    trainer = new_trainer()
    trainer.save(2)
    # As by a stalled trainer whose last look at the attempts was before the new claim.
    for name in store.list("checkpoints/ckpt-2-2."):
        store.create(name.replace("2-2", "3-1"), store.get(name).data)
    void = CheckpointId(3, 1)
    assert read_line(store).void == (void,)
    _pin(store, void)
    assert void not in trainer.retire().retired
    unpin(store, void)
    assert void in trainer.retire().retired


def test_a_pin_left_by_a_crash_is_swept_when_its_checkpoint_is_gone(store, new_trainer):
    trainer = new_trainer()
    first = trainer.save(1)
    trainer.save(2)
    trainer.retire()
    store.create(f"pins/ckpt-{first}.json", b"{}")
    assert trainer.retire().swept == (("pin", first, ""),)
    assert store.list("pins/") == []
