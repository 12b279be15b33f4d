"""Trainer and evaluator as real processes on one run folder."""

import json
import random
import signal
import time
import urllib.request

import pytest
import tensorflow as tf
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from tandem.checkpoints.attempts import Outcome
from tandem.checkpoints.commits import read_commit
from tandem.checkpoints.ledger import EntryOutcome, read_ledger
from tandem.checkpoints.lines import read_line
from tandem.checkpoints.opening import open_store
from tandem.evaluation.coco_metrics import TAGS


def scalars(folder, tag):
    events = EventAccumulator(str(folder), size_guidance={"tensors": 0})
    events.Reload()
    return [event.step for event in events.Tensors(tag)]


def fetch(log, path):
    address = next(word for word in log.split() if word.startswith("http://"))
    url = address.removesuffix(",").removesuffix("/metrics") + path
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


@pytest.mark.slow
def test_a_run_ends_with_every_checkpoint_scored_once(small_run):
    trainer = small_run.trainer("--checkpoint-every-n", 4, "--summary-every-n", 2, num_steps=10)
    evaluator = small_run.evaluator(num_steps=10)
    trainer.wait_for_log("step 1/10")
    shown = fetch(trainer.log, "/metrics")
    assert "tandem_train_target_step 10.0" in shown
    assert 'tandem_run_state{state="running"} 1.0' in shown
    assert json.loads(fetch(trainer.log, "/healthz"))["status"] == "ok"
    assert trainer.wait() == 0, trainer.log
    assert evaluator.wait() == 0, evaluator.log
    assert "Completed" in evaluator.log

    store = open_store(str(small_run.run))
    line = read_line(store)
    assert [checkpoint.step for checkpoint in line.checkpoints] == [4, 8, 10]
    assert line.outcome is Outcome.FINISHED
    commit = read_commit(store, line.checkpoints[-1])
    assert commit.samples_seen == 10 * 4
    entries = sorted(read_ledger(store), key=lambda entry: entry.checkpoint)
    assert [entry.checkpoint.step for entry in entries] == [4, 8, 10]
    for entry in entries:
        assert entry.outcome is EntryOutcome.SCORED
        assert (entry.images_expected, entry.images_read, entry.images_scored) == (6, 6, 6)
        assert set(TAGS.values()) < set(entry.metrics)
    latest = tf.train.latest_checkpoint(str(small_run.run / "checkpoints"))
    assert latest.endswith("ckpt-10-1")
    assert scalars(small_run.run / "train", "Loss/total_loss") == [2, 4, 6, 8, 10]
    assert scalars(small_run.run / "train", "learning_rate") == [2, 4, 6, 8, 10]
    assert scalars(small_run.run / "eval", "Loss/total_loss") == [4, 8, 10]

    again = small_run.evaluator(num_steps=10)
    assert again.wait() == 0
    assert scalars(small_run.run / "eval", "Loss/total_loss") == [4, 8, 10]
    assert len(read_ledger(store)) == 3


@pytest.mark.slow
def test_a_trainer_that_is_killed_at_random_goes_on_and_ends_at_the_last_step(small_run):
    num_steps, moments = 30, random.Random(11)
    evaluator = small_run.evaluator("--lease-seconds", 5, num_steps=num_steps)
    for kill in range(3):
        trainer = small_run.trainer("--checkpoint-every-n", 3, num_steps=num_steps)
        trainer.wait_for_log(f"step {6 * (kill + 1)}/{num_steps}")
        time.sleep(moments.uniform(0.0, 0.5))
        trainer.send(signal.SIGKILL)
        trainer.wait()
    trainer = small_run.trainer("--checkpoint-every-n", 3, num_steps=num_steps)
    assert trainer.wait() == 0, trainer.log
    assert evaluator.wait() == 0, evaluator.log

    store = open_store(str(small_run.run))
    line = read_line(store)
    assert line.newest.step == num_steps
    assert line.end.final_step == num_steps
    assert len(line.attempts) == 4
    for attempt in line.attempts[1:]:
        assert attempt.resumed_from is not None
    recorded = [entry.checkpoint for entry in read_ledger(store)]
    assert len(recorded) == len(set(recorded))
    assert set(line.checkpoints) <= set(recorded)
    assert not list(small_run.run.glob(".saving*"))


@pytest.mark.slow
def test_sigterm_finishes_the_step_saves_and_says_resume_me(small_run):
    trainer = small_run.trainer("--checkpoint-every-n", 1000, num_steps=500)
    trainer.wait_for_log("step 3/500")
    trainer.send(signal.SIGTERM)
    assert trainer.wait() == 42, trainer.log
    store = open_store(str(small_run.run))
    line = read_line(store)
    assert line.outcome is Outcome.PREEMPTED
    stopped_at = line.newest.step
    assert stopped_at >= 3

    last = stopped_at + 2
    trainer = small_run.trainer("--checkpoint-every-n", 1000, num_steps=last)
    assert trainer.wait() == 0, trainer.log
    assert f"resuming from checkpoint {line.newest}" in trainer.log
    assert f"num_steps: 500 -> {last}" in trainer.log
    line = read_line(store)
    assert line.newest.step == last
    assert line.outcome is Outcome.FINISHED


@pytest.mark.slow
def test_an_evaluator_without_a_trainer_times_out_with_its_own_exit_code(small_run):
    evaluator = small_run.evaluator("--wait-interval", 2, num_steps=10)
    assert evaluator.wait() == 5, evaluator.log
    assert "TimedOut: no new checkpoint and no sign of life of the trainer for 2 s" in evaluator.log


@pytest.mark.slow
def test_another_trainer_is_refused_while_one_lives_that_succeeded_a_killed_one(small_run):
    killed = small_run.trainer(num_steps=10000)
    killed.wait_for_log("attempt 1 of")
    killed.send(signal.SIGKILL)
    killed.wait()
    living = small_run.trainer("--heartbeat-interval", 0.5, num_steps=10000)
    living.wait_for_log("step 2/10000")
    other = small_run.trainer(num_steps=10000)
    assert other.wait() == 2, other.log
    assert "is being trained by" in other.log
    assert "--takeover" in other.log
    living.send(signal.SIGTERM)
    assert living.wait() == 42


@pytest.mark.slow
def test_damage_is_said_and_a_run_without_a_sound_checkpoint_is_refused(small_run):
    assert small_run.trainer("--checkpoint-every-n", 1, num_steps=2).wait() == 0
    checkpoints = small_run.run / "checkpoints"

    def flip(step):
        data = checkpoints / f"ckpt-{step}-1.data-00000-of-00001"
        content = bytearray(data.read_bytes())
        content[len(content) // 2] ^= 1
        data.unlink()
        data.write_bytes(content)

    flip(2)
    trainer = small_run.trainer("--checkpoint-every-n", 100, num_steps=3)
    assert trainer.wait() == 0, trainer.log
    assert "checkpoint 2-1 of" in trainer.log
    assert "going back to the newest sound one" in trainer.log
    assert "resuming from checkpoint 1-1" in trainer.log

    flip(1)
    last = checkpoints / "ckpt-3-3.data-00000-of-00001"
    last.unlink()
    last.write_bytes(b"gone")
    attempts = sorted((small_run.run / "attempts").iterdir())
    trainer = small_run.trainer(num_steps=4)
    assert trainer.wait() == 2, trainer.log
    assert "is sound" in trainer.log
    assert sorted((small_run.run / "attempts").iterdir()) == attempts


@pytest.mark.slow
def test_resuming_with_another_number_of_classes_is_refused_and_claims_nothing(small_run):
    assert small_run.trainer(num_steps=2).wait() == 0
    attempts = sorted((small_run.run / "attempts").iterdir())
    labels = small_run.folder / "labels.pbtxt"
    labels.write_text('item { id: 1 name: "circle" }')
    trainer = small_run.trainer(
        "--override",
        f'model {{ ssd {{ num_classes: 1 }} }} train_input_reader {{ label_map_path: "{labels}" }}',
        num_steps=4,
    )
    assert trainer.wait() == 2, trainer.log
    assert "was saved by another model than the config describes" in trainer.log
    assert sorted((small_run.run / "attempts").iterdir()) == attempts


@pytest.mark.slow
def test_outside_a_cluster_both_say_so_once_and_go_on(small_run):
    trainer = small_run.trainer("--namespace", "research", "--job", "trainer", num_steps=2)
    assert trainer.wait() == 0, trainer.log
    assert trainer.log.count("going on without the cluster") == 1
    evaluator = small_run.evaluator(
        *("--namespace", "research", "--deployment", "evaluator"),
        *("--on-end", "scale-to-zero", "--trainer-job", "trainer"),
        num_steps=2,
    )
    evaluator.wait_for_log("staying up, as the Deployment can't be scaled to zero")
    evaluator.send(signal.SIGTERM)
    assert evaluator.wait() == 0, evaluator.log
    assert evaluator.log.count("going on without the cluster") == 1
