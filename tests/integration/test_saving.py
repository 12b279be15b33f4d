"""Saving behind the loop, seen from outside of a real trainer."""

import contextlib
import signal
import time

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorflow import make_ndarray

from tandem.checkpoints.lines import read_line
from tandem.checkpoints.opening import open_store
from tandem.errors import GenerationMismatchError, ObjectNotFoundError
from tests.rig.gcs import BUCKET, running_gcs, unique

HOPELESS = """
train_config { optimizer { momentum_optimizer { learning_rate { constant_learning_rate {
  learning_rate: 1e30
} } } } }
"""


def losses(run):
    events = EventAccumulator(str(run / "train"), size_guidance={"tensors": 0})
    events.Reload()
    return {
        event.step: float(make_ndarray(event.tensor_proto))
        for event in events.Tensors("Loss/total_loss")
    }


@pytest.mark.slow
def test_a_seeded_run_has_the_same_losses_with_a_save_at_every_step_and_without(
    small_run, tmp_path, shapes
):
    often = small_run.trainer("--checkpoint-every-n", 1, "--summary-every-n", 1, num_steps=6)
    assert often.wait() == 0, often.log
    with_saves = losses(small_run.run)
    small_run.run = tmp_path / "without"
    seldom = small_run.trainer("--checkpoint-every-n", 100, "--summary-every-n", 1, num_steps=6)
    assert seldom.wait() == 0, seldom.log
    assert sorted(with_saves) == [1, 2, 3, 4, 5, 6]
    assert losses(small_run.run) == with_saves
    assert len(read_line(open_store(str(small_run.run))).checkpoints) == 1


@pytest.mark.slow
def test_a_deadline_that_can_not_be_met_ends_with_another_code_than_saved(small_run):
    trainer = small_run.trainer("--termination-deadline", 0, num_steps=500)
    trainer.wait_for_log("step 3/500")
    trainer.send(signal.SIGTERM)
    assert trainer.wait() == 1, trainer.log
    assert "is not committed 0 s after the wish to stop" in trainer.log
    assert read_line(open_store(str(small_run.run))).outcome is None


@pytest.fixture
def bucket_run(small_run, monkeypatch):
    """A run in a bucket that nobody else uses, and its server."""
    with running_gcs() as server:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)
        small_run.run = f"gs://{BUCKET}/{unique('run')}"
        yield small_run, server


@pytest.mark.slow
def test_the_deadline_holds_for_all_that_comes_after_it_too_when_the_store_hangs(bucket_run):
    run, server = bucket_run
    trainer = run.trainer("--termination-deadline", 4, num_steps=500)
    trainer.wait_for_log("step 3/500")
    server.put_faults({"match": "", "times": None, "delay": 120.0})
    time.sleep(1.0)
    trainer.send(signal.SIGTERM)
    assert trainer.wait() == 1, trainer.log
    assert "is not committed 4 s after the wish to stop" in trainer.log
    assert "still there" not in trainer.log  # by itself, although what hangs is closed last


@pytest.mark.slow
def test_a_training_that_failed_says_so_although_the_store_refuses_to_record_it(bucket_run):
    run, server = bucket_run
    server.put_faults({"match": "attempts/0001.end", "times": None, "status": 403})
    trainer = run.trainer("--override", HOPELESS, num_steps=500)
    assert trainer.wait() == 3, trainer.log
    assert "the end of the attempt is not recorded" in trainer.log
    assert "roles/storage.objectUser" in trainer.log


@pytest.mark.slow
def test_a_trainer_whose_run_is_deleted_ends_instead_of_training_for_nobody(bucket_run):
    run, _ = bucket_run
    trainer = run.trainer("--checkpoint-every-n", 5, num_steps=100_000)
    trainer.wait_for_log("checkpoint 5 committed")
    store = open_store(run.run)
    for name in store.list(""):
        with contextlib.suppress(ObjectNotFoundError, GenerationMismatchError):
            store.delete(name, generation=store.generation(name))
    assert trainer.wait() == 2, trainer.log
    assert "was deleted or replaced while attempt 1 trained" in trainer.log


@pytest.mark.slow
def test_a_trainer_whose_files_a_newer_attempt_removes_says_that_it_is_superseded(bucket_run):
    """Both have their files under way in one folder, as two pods on a shared volume may."""
    run, _ = bucket_run
    flags = ("--summary-every-n", 1, "--checkpoint-every-n", 5, "--heartbeat-interval", 600)
    older = run.trainer(*flags, num_steps=100_000)
    older.wait_for_log("checkpoint 5 committed")
    older.send(signal.SIGSTOP)
    newer = run.trainer(*flags, "--takeover", num_steps=100_000)
    newer.wait_for_log("committed")
    older.send(signal.SIGCONT)
    assert older.wait() == 6, older.log
    assert "has taken over" in older.log
    assert "lost on the way out" not in older.log
