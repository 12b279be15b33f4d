"""Faults 11 to 13 and 17 to 24: trainer and evaluator hang, fail, compete, lag, or regress."""

import os
import shutil
import signal

from services.exits import Exit
from tandem.checkpoints.ledger import EntryOutcome, LedgerEntry, record_entry
from tests.faults.scenes import CannotError

_HANG_SECONDS = 150.0
_SILENT_SECONDS = 62.0
_DIVERGING = """
train_config { optimizer { momentum_optimizer { learning_rate {
  constant_learning_rate { learning_rate: 1e12 }
} } } }
"""
_FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"
_OLD, _NEW = "registry.example/tandem:1.4.0", "registry.example/tandem:1.5.0"


def input_hangs(scene):
    """The record file is replaced by a pipe that nobody writes to."""
    scene.begin()
    stop_up(scene.files["train"])
    wait_for_hang(scene, "trainer")
    scene.answer()


def evaluation_hangs(scene):
    """The second of the eval set's two files is replaced by such a pipe."""
    first = scene.files["held_out"]
    second = first.with_name("second.record")
    shutil.copy(first, second)
    scene.files["held_out"] = f'{first}" input_path: "{second}'
    scene.begin()
    stop_up(second)
    wait_for_hang(scene, "evaluator-main")
    scene.answer()


def stop_up(path):
    path.rename(path.with_suffix(".before"))
    os.mkfifo(path)


def wait_for_hang(scene, process):
    """Its watchdog has said that it hangs, and its own heartbeat has been silent for long."""

    def hangs():
        told = scene.beat(f"watchdog-{process}")
        return told is not None and told.phase == "hanging"

    scene.until(hangs, f"a word of the watchdog of {process}", seconds=_HANG_SECONDS)


def loss_not_finite(scene):
    """Someone raises the learning rate, and has the trainer go on with it."""
    scene.begin()
    scene.stop_trainer()
    scene.start_trainer("--override", _DIVERGING)
    scene.expect_exit(scene.trainer, Exit.TRAINING_FAILED)
    scene.answer()


def preempted_three_times(scene):
    scene.begin()
    for _ in range(3):
        scene.restart_trainer()
    scene.answer()


def last_evaluation_owed(scene):
    """The evaluator is killed, and training goes on to its end."""
    scene.begin()
    scene.evaluator.kill()
    scene.evaluator = None
    scene.stop_trainer()
    step = scene.line().newest.step + 30
    scene.expect_exit(scene.start_trainer("--num-train-steps", step), Exit.FINISHED)
    scene.pause(_SILENT_SECONDS)
    scene.answer()


def evaluator_too_slow(scene):
    """From some time on, each step has a checkpoint."""
    scene.begin()
    scene.restart_trainer(every_n=1)
    scene.until(
        lambda: scene.num_pending() >= 6,
        "six checkpoints that wait",
    )
    scene.pause(5)
    scene.answer()


def two_trainers(scene):
    scene.begin()
    first = scene.trainer
    scene.start_trainer("--takeover", owner="another release")
    scene.wait_for_attempt(2)
    scene.expect_exit(first, Exit.SUPERSEDED)
    scene.answer()


def clock_wrong(scene):
    """The evaluator's, by an hour."""
    if not os.path.exists(_FAKETIME):
        raise CannotError("needs libfaketime (on Debian: apt-get install faketime)")
    scene.begin()
    scene.evaluator.send(signal.SIGTERM)
    scene.expect_exit(scene.evaluator, Exit.SAVED_RESUME_ME)
    scene.start_evaluator(
        LD_PRELOAD=_FAKETIME, FAKETIME="+1h", FAKETIME_DONT_FAKE_MONOTONIC="1", NO_FAKE_STAT="1"
    )
    scene.wait_for_score()
    scene.until(lambda: scene.num_pending() <= 1, "an evaluator that has caught up")
    scene.answer()


def evaluator_image_older(scene):
    """The trainer is brought to a newer release, and the evaluator is not."""
    scene.begin(TANDEM_IMAGE=_OLD)
    scene.restart_trainer(TANDEM_IMAGE=_NEW)
    scene.answer()


def metric_fell(scene):
    """A checkpoint had a far better metric than the ones after it."""
    scene.begin()
    scene.evaluator.send(signal.SIGSTOP)
    good = scene.wait_for_checkpoint(after=scene.line().newest)
    (eval_set,) = scene.line().attempts[-1].eval_sets
    was_first = record_entry(
        scene.store,
        LedgerEntry(
            nonce="an evaluation that went well",
            checkpoint=good,
            eval_set=eval_set.name,
            set_digest=eval_set.digest,
            outcome=EntryOutcome.SCORED,
            metrics={"DetectionBoxes_Precision/mAP": 0.8},
            recorded_by="tests.faults",
            recorded_at="2026-01-01T00:00:00Z",
        ),
    )
    assert was_first, f"{good} has an entry already"
    scene.evaluator.send(signal.SIGCONT)
    scene.until(lambda: max(scene.scored_steps()) > good.step, "the score of a later checkpoint")
    scene.answer()
