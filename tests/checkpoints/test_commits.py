import json

import pytest

from tandem.checkpoints.commits import read_commit, tensorflow_files
from tandem.checkpoints.lines import read_line
from tandem.checkpoints.names import CheckpointId
from tandem.errors import (
    AttemptSupersededError,
    CheckpointDamagedError,
    ObjectNotFoundError,
    StoreError,
    StoreUnavailableError,
)
from tests.checkpoints.actors import claim
from tests.checkpoints.hooked_store import HookedStore, once

COMMIT = r"ckpt-7-1\.commit\.json"


def _stop():
    raise InterruptedError("killed")


def _fail():
    raise StoreUnavailableError("the connection was reset")


def test_a_commit_says_what_it_consists_of(store, new_trainer):
    trainer = new_trainer()
    checkpoint = trainer.commit(7)
    assert checkpoint == CheckpointId(7, 1)
    commit = read_commit(store, checkpoint)
    for file in commit.files:
        stat = store.stat(f"checkpoints/ckpt-7-1{file.suffix}")
        assert (file.size, file.crc32c, file.generation) == (
            stat.size,
            stat.crc32c,
            stat.generation,
        )
    assert [file.suffix for file in commit.files] == [".data-00000-of-00001", ".index"]
    assert (commit.samples_seen, commit.training_seconds, commit.config_digest) == (56, 7.0, "c0")
    assert commit.size == sum(file.size for file in commit.files)


@pytest.mark.parametrize(
    ("operation", "pattern"),
    [
        ("create_from_file", r"\.data-"),
        ("create_from_file", r"\.index"),
        ("list", "attempts/"),
        ("create", COMMIT),
    ],
)
def test_until_the_commit_is_put_there_is_no_checkpoint(store, new_trainer, operation, pattern):
    trainer = new_trainer()
    with pytest.raises(InterruptedError):
        trainer.commit(7, store=HookedStore(store, before=once(operation, pattern, _stop)))
    assert read_line(store).checkpoints == ()
    with pytest.raises(ObjectNotFoundError):
        read_commit(store, CheckpointId(7, 1))


def test_a_superseded_attempt_commits_nothing(store, clock, new_trainer):
    trainer = new_trainer()
    claim(store, clock)
    with pytest.raises(AttemptSupersededError):
        trainer.commit(7)
    assert read_line(store).checkpoints == ()


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_commit_with_an_unclear_answer_ends_as_one_commit(store, new_trainer, moment):
    trainer = new_trainer()
    checkpoint = trainer.commit(
        7, store=HookedStore(store, **{moment: once("create", COMMIT, _fail)})
    )
    assert read_commit(store, checkpoint).checkpoint == checkpoint


def test_a_commit_whose_bytes_changed_is_damaged(store, new_trainer):
    trainer = new_trainer()
    checkpoint = trainer.commit(7)
    name = "checkpoints/ckpt-7-1.commit.json"
    changed = json.loads(store.get(name).data) | {"samples_seen": 57}
    stat = store.stat(name)
    store.delete(name, generation=stat.generation)
    store.create(name, json.dumps(changed).encode())
    with pytest.raises(CheckpointDamagedError, match=COMMIT):
        read_commit(store, checkpoint)


def test_a_commit_under_another_ones_name_is_damaged(store, new_trainer):
    new_trainer().commit(7)
    data = store.get("checkpoints/ckpt-7-1.commit.json").data
    store.create("checkpoints/ckpt-8-1.commit.json", data)
    with pytest.raises(CheckpointDamagedError, match="7-1"):
        read_commit(store, CheckpointId(8, 1))


@pytest.mark.parametrize(
    "files", [[], ["saved.index"], ["saved.data-00000-of-00001"], ["savedx.index", "saved.txt"]]
)
def test_half_a_checkpoint_on_the_local_disk_is_not_uploaded(tmp_path, files):
    for name in files:
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(StoreError, match="no whole TensorFlow checkpoint"):
        tensorflow_files(tmp_path / "saved")


def test_a_sharded_checkpoint_is_uploaded_whole(tmp_path):
    files = ["saved.index", "saved.data-00000-of-00002", "saved.data-00001-of-00002"]
    for name in [*files, "saved-2.index", "other.index"]:
        (tmp_path / name).write_bytes(b"")
    found = tensorflow_files(tmp_path / "saved")
    assert sorted(path.name for path in found.values()) == sorted(files)
