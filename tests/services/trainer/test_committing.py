"""A commit whose answer is lost, on both backends; the rest is in the crash test."""

import pytest

from services.trainer.committing import Committer
from services.trainer.scratch import remove_leftovers
from tandem.checkpoints.lines import read_line
from tandem.checkpoints.local import LocalStore
from tandem.checkpoints.names import CheckpointId
from tandem.checkpoints.retiring import Retirer
from tandem.errors import (
    AttemptSupersededError,
    ObjectExistsError,
    StoreError,
    StoreUnavailableError,
)
from tests.checkpoints.actors import FakeClock, claim, write_local_checkpoint
from tests.checkpoints.hooked_store import HookedStore
from tests.checkpoints.memory_store import MemoryStore

COMMIT = "checkpoints/ckpt-1-1.commit.json"


class Outage:
    """From the moment at which a commit was put, nothing answers, until it is over."""

    def __init__(self):
        self.is_on = False
        self.was_on = False

    def before(self, operation, name):
        if self.is_on:
            raise StoreUnavailableError("away")

    def after(self, operation, name):
        if name == COMMIT and operation == "create" and not self.was_on:
            self.is_on = self.was_on = True
            raise StoreUnavailableError("no answer")


def committer_on(store, tmp_path, *, clock=None):
    clock = clock or FakeClock()
    attempt = claim(store, clock)
    return Committer(
        store,
        attempt,
        retirer=Retirer(store, attempt, surroundings=clock.surroundings),
        scratch=tmp_path,
        surroundings=clock.surroundings,
    )


def commit(committer, content="a"):
    def write_files(prefix):
        saved = write_local_checkpoint(prefix.parent, content=content)
        for path in saved.parent.glob("saved.*"):
            path.rename(path.with_name(path.name.replace("saved", prefix.name)))

    return committer.commit(1, write_files, samples_seen=8, training_seconds=1.0)


def test_a_commit_that_stands_although_its_answer_was_lost_is_taken_for_our_own(tmp_path):
    outage = Outage()
    store = HookedStore(MemoryStore(), before=outage.before, after=outage.after)
    committer = committer_on(store, tmp_path)
    with pytest.raises(StoreUnavailableError):
        commit(committer)
    assert committer.newest is None
    outage.is_on = False
    assert commit(committer).checkpoint == CheckpointId(1, 1)
    assert read_line(store).checkpoints == (CheckpointId(1, 1),)


@pytest.mark.parametrize("kind", [MemoryStore, LocalStore])
def test_an_attempt_whose_files_a_newer_one_took_away_is_superseded_rather_than_broken(
    tmp_path, kind
):
    clock = FakeClock()
    store = LocalStore(tmp_path / "run") if kind is LocalStore else MemoryStore()
    committer = committer_on(store, tmp_path, clock=clock)
    newer = claim(store, clock)

    def write_and_stall(prefix):
        write_local_checkpoint(prefix.parent, content="a")
        remove_leftovers(tmp_path, newer.number)

    with pytest.raises(AttemptSupersededError):
        committer.commit(1, write_and_stall, samples_seen=8, training_seconds=1.0)


def test_other_data_under_the_same_name_are_never_taken_for_ours(tmp_path):
    store = MemoryStore()
    committer = committer_on(store, tmp_path)
    store.create("checkpoints/ckpt-1-1.data-00000-of-00001", b"other")
    with pytest.raises(ObjectExistsError):
        commit(committer)
    assert read_line(store).checkpoints == ()


def test_what_fails_after_the_commit_leaves_it_standing(tmp_path):
    def refuse(operation, name):
        if operation == "replace":
            raise StoreError("no permission")

    committer = committer_on(HookedStore(MemoryStore(), before=refuse), tmp_path)
    with pytest.raises(StoreError, match="no permission"):
        commit(committer)
    assert committer.newest.checkpoint == CheckpointId(1, 1)


def test_a_store_that_is_away_after_the_commit_is_only_worth_a_warning(tmp_path):
    def be_away(operation, name):
        if operation == "replace":
            raise StoreUnavailableError("away")

    committer = committer_on(HookedStore(MemoryStore(), before=be_away), tmp_path)
    assert commit(committer).checkpoint == CheckpointId(1, 1)
