import pytest

from tandem.checkpoints.runs import ensure_run, foreign_checkpoint_files
from tandem.errors import RunConflictError
from tests.checkpoints.hooked_store import HookedStore, once


def test_whoever_comes_first_names_the_run(store, clock):
    first = ensure_run(store, surroundings=clock.surroundings)
    assert ensure_run(store, surroundings=clock.surroundings) == first


def test_two_that_come_at_once_agree(store, clock):
    ids = []
    late = HookedStore(
        store, before=once("create", "run.json", lambda: ids.append(ensure_run(store)))
    )
    assert [ensure_run(late, surroundings=clock.surroundings)] == ids


@pytest.mark.parametrize(
    "found",
    [
        ["checkpoint", "ckpt-0.index", "ckpt-0.data-00000-of-00001"],
        ["model.ckpt-5.meta"],
        ["checkpoints/checkpoint", "checkpoints/ckpt-7.index"],
        ["checkpoints/ckpt-7-1.index"],  # looks like a run's own, but no attempt 1 was claimed
    ],
)
def test_a_folder_with_another_programs_checkpoint_is_refused_and_left_as_it_is(store, found):
    for name in found:
        store.create(name, name.encode())
    with pytest.raises(RunConflictError, match=found[0]):
        ensure_run(store)
    assert store.list("") == sorted(found)


def test_a_run_with_checkpoints_of_its_own_is_not_refused(store, clock, new_trainer):
    ensure_run(store, surroundings=clock.surroundings)
    trainer = new_trainer()
    trainer.save(1)
    ensure_run(store, surroundings=clock.surroundings)


def test_data_that_a_killed_attempt_left_is_the_runs_own():
    assert foreign_checkpoint_files(["attempts/0001.json", "checkpoints/ckpt-7-1.index"]) == []


def test_a_foreign_checkpoint_dropped_into_a_run_later_is_refused():
    names = ["attempts/0001.json", "checkpoints/ckpt-7-1.commit.json", "ckpt-0.index"]
    assert foreign_checkpoint_files(names) == ["ckpt-0.index"]


def test_files_elsewhere_are_nobodys_business():
    names = ["export/1/variables/variables.index", "train/events.out.tfevents.1", "pipeline.config"]
    assert foreign_checkpoint_files(names) == []
