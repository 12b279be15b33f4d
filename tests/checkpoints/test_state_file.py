import shutil

import pytest

from tandem.checkpoints.commits import commit_checkpoint
from tandem.checkpoints.local import LocalStore
from tandem.checkpoints.names import CheckpointId
from tandem.checkpoints.state_file import state_file, write_state_file
from tests.checkpoints.actors import claim
from tests.checkpoints.hooked_store import HookedStore, once

STATE = "checkpoints/checkpoint"


def test_the_text_names_every_checkpoint_and_the_newest():
    text = state_file([CheckpointId(5, 1), CheckpointId(7, 2)], nonce="n1")
    assert text.splitlines() == [
        "# Written by Tandem; derived from the commits. n1",
        'model_checkpoint_path: "ckpt-7-2"',
        'all_model_checkpoint_paths: "ckpt-5-1"',
        'all_model_checkpoint_paths: "ckpt-7-2"',
    ]


def test_without_a_checkpoint_no_state_file_appears(store, new_trainer):
    new_trainer().write_state_file()
    assert STATE not in store.list("")


def test_it_names_neither_damaged_nor_retiring_nor_void_checkpoints(store, new_trainer):
    first = new_trainer()
    for step in range(1, 6):
        first.commit(step)
    second = new_trainer()
    store.create("checkpoints/ckpt-1-1.retire.json", b"{}")
    store.create("checkpoints/ckpt-2-1.damaged.json", b"{}")
    store.create("checkpoints/ckpt-9-2.index", b"")
    second.write_state_file()
    text = store.get(STATE).data.decode()
    assert [f"{step}-1" in text for step in range(1, 6)] == [False, False, True, True, True]
    assert "9-2" not in text


def test_another_writer_in_between_makes_it_list_again(store, new_trainer):
    trainer = new_trainer()
    trainer.save(1)
    late = HookedStore(store, before=once("replace", STATE, lambda: trainer.save(2)))
    trainer.write_state_file(store=late)
    assert b'model_checkpoint_path: "ckpt-2-1"' in store.get(STATE).data


def test_a_slower_writer_with_an_older_listing_is_put_right(store, new_trainer):
    trainer = new_trainer()
    trainer.save(1)
    trainer.commit(2)

    def write_what_was_listed_before_the_commit():
        old = state_file([CheckpointId(1, 1)], nonce="slow").encode()
        store.replace(STATE, old, generation=store.stat(STATE).generation)

    hook = once("replace", STATE, write_what_was_listed_before_the_commit)
    trainer.write_state_file(store=HookedStore(store, before=hook))
    assert b'model_checkpoint_path: "ckpt-2-1"' in store.get(STATE).data


@pytest.mark.parametrize("broken", [b"", b"\xff", b'model_checkpoint_path: "nowhere"'])
def test_a_state_file_that_was_damaged_is_written_anew(store, new_trainer, broken):
    trainer = new_trainer()
    trainer.commit(1)
    store.create(STATE, broken)
    trainer.write_state_file()
    assert b'model_checkpoint_path: "ckpt-1-1"' in store.get(STATE).data


def test_its_content_never_repeats(store, new_trainer):
    trainer = new_trainer()
    trainer.save(1)
    first = store.get(STATE)
    trainer.write_state_file()
    second = store.get(STATE)
    assert first.data != second.data
    assert first.stat.generation != second.stat.generation


@pytest.mark.filterwarnings("ignore")
def test_plain_tensorflow_finds_and_restores_the_newest_also_after_the_folder_moved(
    tmp_path, clock
):
    tf = pytest.importorskip("tensorflow")

    store = LocalStore(tmp_path / "run")
    attempt = claim(store, clock)
    variable = tf.Variable(0.0)
    checkpoint = tf.train.Checkpoint(v=variable)
    for step in (5, 10):
        variable.assign(float(step))
        prefix = checkpoint.write(str(tmp_path / "saving" / f"step-{step}"))
        commit_checkpoint(
            store,
            attempt,
            step=step,
            local_prefix=tmp_path / "saving" / f"step-{step}",
            config_digest="c0",
            samples_seen=step,
            training_seconds=1.0,
            surroundings=clock.surroundings,
        )
        assert prefix
    shutil.rmtree(tmp_path / "saving")
    write_state_file(store, surroundings=clock.surroundings)
    (tmp_path / "run").rename(tmp_path / "moved")
    folder = tmp_path / "moved" / "checkpoints"
    newest = tf.train.latest_checkpoint(str(folder))
    assert newest == str(folder / "ckpt-10-1")
    state = tf.train.get_checkpoint_state(str(folder))
    assert list(state.all_model_checkpoint_paths) == [
        str(folder / "ckpt-5-1"),
        str(folder / "ckpt-10-1"),
    ]
    restored = tf.Variable(0.0)
    tf.train.Checkpoint(v=restored).read(newest).assert_consumed()
    assert restored.numpy() == 10.0
    manager = tf.train.CheckpointManager(checkpoint, str(folder), max_to_keep=5)
    assert manager.latest_checkpoint == newest
