"""A loop that hangs, in real processes: the run folder says where."""

import os
import shutil
import signal
import time

import pytest

from tandem.checkpoints.heartbeats import read_heartbeat
from tandem.checkpoints.opening import open_store


def wait_for_word(store, process, phase, *, seconds=120):
    """The watchdog's record of a process once it has this phase."""
    deadline = time.monotonic() + seconds
    while True:
        record = read_heartbeat(store, f"watchdog-{process}")
        if record is not None and record.phase == phase:
            return record
        assert time.monotonic() < deadline, f"no word {phase!r} in {seconds} s, but {record}"
        time.sleep(0.5)


@pytest.fixture
def records(tmp_path, shapes):
    """Record files of this test's own, which it may replace by pipes that nobody writes to."""
    copies = {}
    for name in ("train", "held_out"):
        copies[name] = tmp_path / f"{name}.record"
        shutil.copy(getattr(shapes, name), copies[name])
    return copies


def stop_up(path):
    path.rename(path.with_suffix(".before"))
    os.mkfifo(path)


@pytest.mark.slow
def test_a_trainer_whose_input_hangs_says_so_and_names_the_reading_function(small_run, records):
    trainer = small_run.trainer(
        *("--heartbeat-interval", 0.5, "--checkpoint-every-n", 5, "--termination-deadline", 3),
        "--override",
        f'train_input_reader {{ tf_record_input_reader {{ input_path: "{records["train"]}" }} }}',
        num_steps=100000,
    )
    trainer.wait_for_log("step 6/100000")
    stop_up(records["train"])
    store = open_store(str(small_run.run))
    record = wait_for_word(store, "trainer", "hanging")
    facts = record.facts
    assert (facts["at"], facts["loop_phase"], record.attempt) == ("waiting for data", "training", 1)
    assert facts["silent_seconds"] >= 60
    assert "iterator_get_next" in facts["stack"]
    assert "run_steps" in facts["stack"]
    beat = read_heartbeat(store, "trainer")
    assert (beat.phase, beat.step) == ("training", record.step)
    assert beat.facts["checkpoint_every_n"] == 5
    assert beat.facts["committed_step"] <= record.step
    assert beat.facts["store_requests"] > 0
    assert "no progress for" in trainer.log
    trainer.send(signal.SIGTERM)  # which Python, being in TensorFlow, does not come to see
    assert trainer.wait() == 1, trainer.log
    assert "still there 13 s after a signal to stop" in trainer.log

    records["train"].unlink()
    records["train"].with_suffix(".before").rename(records["train"])
    again = small_run.trainer(num_steps=record.step + 1)
    assert again.wait() == 0, again.log
    assert read_heartbeat(store, "watchdog-trainer").phase == "recovered"


@pytest.mark.slow
def test_an_evaluator_that_hangs_in_a_set_says_so(small_run, records):
    assert small_run.trainer("--checkpoint-every-n", 1, num_steps=1).wait() == 0
    evaluator = small_run.evaluator(
        "--override",
        "eval_input_reader { shuffle: false "
        f'label_map_path: "{small_run.label_map}" '
        f'tf_record_input_reader {{ input_path: "{records["held_out"]}" }} }}',
        *("--on-end", "stay"),
        num_steps=1,
    )
    evaluator.wait_for_log("staying up to serve metrics")
    stop_up(records["held_out"])
    trainer = small_run.trainer(num_steps=2)  # a new checkpoint to score
    store = open_store(str(small_run.run))
    record = wait_for_word(store, "evaluator-main", "hanging", seconds=200)
    assert (record.attempt, record.step) == (None, 2)
    assert (record.facts["at"], record.facts["loop_phase"]) == ("scoring", "running")
    assert "iterator_get_next" in record.facts["stack"]
    assert read_heartbeat(store, "evaluator-main").phase == "running"
    assert trainer.wait() == 0, trainer.log
