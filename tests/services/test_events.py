"""TensorBoard's event files in a local run folder and in a bucket."""

import json
import subprocess
import sys

import pytest
import tensorflow as tf
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from services import events as module
from services.events import EventFolder
from tandem.checkpoints.local import LocalStore
from tandem.errors import ConfigError, StoreUnavailableError
from tests.checkpoints.hooked_store import HookedStore, once
from tests.checkpoints.memory_store import MemoryStore
from tests.deploy.rendering import CHECKOUT

TAG = "Loss/total_loss"


def write(folder, steps):
    for step in steps:
        with folder.at(step):
            tf.summary.scalar(TAG, float(step))


def points_in(store, name, folder):
    """What TensorBoard reads from the store's objects."""
    for found in store.list(f"{name}/"):
        target = folder / found.rpartition("/")[2]
        target.parent.mkdir(exist_ok=True)
        target.unlink(missing_ok=True)
        store.download(found, target)
    events = EventAccumulator(str(folder), size_guidance={"tensors": 0})
    events.Reload()
    return [event.step for event in events.Tensors(TAG)]


def test_a_local_run_has_its_events_in_place(tmp_path):
    store = LocalStore(tmp_path / "run")
    with EventFolder(store, "train", scratch=tmp_path / "scratch") as folder:
        write(folder, [1, 2])
        folder.flush()
        assert folder.steps(TAG) == {1, 2}
    assert len(list((tmp_path / "run" / "train").iterdir())) == 1
    assert not (tmp_path / "scratch").exists()


def test_a_folder_without_points_has_no_file(tmp_path):
    store = MemoryStore()
    with EventFolder(store, "eval", scratch=tmp_path) as folder:
        folder.flush()
        assert folder.steps(TAG) == set()
    assert store.list("") == []


def test_events_of_a_bucket_are_uploaded_at_each_flush_and_known_to_the_next_process(tmp_path):
    store = MemoryStore()
    with EventFolder(store, "eval_day", scratch=tmp_path / "a") as folder:
        write(folder, [1])
        folder.flush()
        assert points_in(store, "eval_day", tmp_path / "seen") == [1]
        write(folder, [2])
        folder.flush()
        assert points_in(store, "eval_day", tmp_path / "seen") == [1, 2]
        write(folder, [3])
    assert len(store.list("eval_day/events.out.tfevents.")) == 1
    with EventFolder(store, "eval_day", scratch=tmp_path / "b") as folder:
        assert folder.steps(TAG) == {1, 2, 3}
        write(folder, [4])
    assert points_in(store, "eval_day", tmp_path / "seen") == [1, 2, 3, 4]


def test_a_thread_uploads_for_a_loop_that_may_not_wait(tmp_path):
    store = MemoryStore()
    with EventFolder(store, "train", scratch=tmp_path / "a", upload_seconds=3600.0) as folder:
        write(folder, [1, 2])
        folder.flush()
        assert store.list("") == []
    assert points_in(store, "train", tmp_path / "seen") == [1, 2]


def test_a_new_file_is_begun_once_one_is_large(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_ROTATE_BYTES", 200)
    store = MemoryStore()
    with EventFolder(store, "train", scratch=tmp_path / "a") as folder:
        for step in range(10):
            write(folder, [step])
            folder.flush()
    assert len(store.list("train/")) > 2
    assert points_in(store, "train", tmp_path / "seen") == list(range(10))


@pytest.mark.parametrize("error", [StoreUnavailableError("503"), ConfigError("403"), OSError(5)])
def test_what_could_not_be_uploaded_goes_with_the_next(tmp_path, error):
    memory = MemoryStore()

    def fail():
        raise error

    broken = once("replace", "train/", fail)
    store = HookedStore(memory, after=broken)
    with EventFolder(store, "train", scratch=tmp_path / "a") as folder:
        write(folder, [1])
        folder.flush()
        assert broken.state["done"]
        write(folder, [2])
        folder.flush()
    assert points_in(memory, "train", tmp_path / "seen") == [1, 2]


_FULL_DISK = """
import logging
import resource
import sys
from pathlib import Path

import tensorflow as tf

from services.events import EventFolder
from tandem.checkpoints.local import LocalStore

logging.basicConfig(format="%(message)s")
run = Path(sys.argv[1])
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
limits = {10: 500, 30: soft}  # from step to step, bytes that a file may have
with EventFolder(LocalStore(run), "train", scratch=run / "scratch") as folder:
    for step in range(40):
        if step in limits:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limits[step], hard))
        with folder.at(step):
            tf.summary.scalar("loss", float(step))
        folder.flush()
    print(sorted(folder.steps("loss")))
"""


def test_a_disk_that_is_full_for_a_while_loses_points_and_nothing_else(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", _FULL_DISK, str(tmp_path)],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=True,
    )
    steps = json.loads(done.stdout)
    assert steps[:10] == list(range(10))
    assert steps[-10:] == list(range(30, 40))
    assert len(steps) < 40
    warnings = [line for line in done.stderr.splitlines() if "points for TensorBoard" in line]
    assert len(warnings) >= 1
    assert "File too large" in warnings[0]
