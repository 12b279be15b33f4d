"""Ends a run as a user would, and checks that nothing is lost and nothing left over."""

import subprocess
import sys

from services.exits import Exit
from tests.soak import facts
from tests.soak.processes import ROOT
from tests.soak.restoring import restored_step
from tests.soak.stage import EVAL_SETS, LEASE_SECONDS

_COMMAND_SECONDS = 120
_PASSING_MARKS = (".retire.json", ".damaged.json")


def finish(stage, *, random):
    """Trains to a last step, waits for the evaluator, cleans up and judges."""
    stage.place.settle()
    stage.trainer.returns = False
    stage.stop_trainer()
    stage.wait_for_end(stage.trainer, "the trainer's end after SIGTERM")
    stage.tend()
    newest = stage.observer.look().newest
    last_step = newest.step + random.randint(1, 10)
    stage.trainer = stage.start_trainer("--num-train-steps", last_step)
    stage.trainer.returns = False
    stage.trainer.may_exit_with = frozenset({Exit.FINISHED})
    stage.evaluator.returns = False
    stage.evaluator.may_exit_with = frozenset({Exit.FINISHED})
    stage.wait_until(lambda: stage.trainer.exit_code is not None, "the trainer's last step")
    stage.wait_until(lambda: stage.evaluator.exit_code is not None, "the evaluator's end")
    stage.tend()
    if "Completed" not in stage.evaluator.text:
        stage.tell("the evaluator ended without saying Completed")
    _run_command(stage, "gc", "--lease-seconds", str(LEASE_SECONDS))
    _run_command(stage, "verify")
    stage.observer.check()
    _judge_final(stage, last_step)
    _judge_leftovers(stage)
    for eval_set in EVAL_SETS:
        _judge_ledger(stage, eval_set)


def _run_command(stage, command, *flags):
    """`tandem store`, which has to be content."""
    done = subprocess.run(
        [sys.executable, "-m", "services.ctl", "store", command, stage.place.location, *flags],
        cwd=ROOT,
        env=stage.place.environment,
        capture_output=True,
        text=True,
        timeout=_COMMAND_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        stage.tell(
            f"tandem store {command} ended with {done.returncode}: {done.stdout}{done.stderr}"
        )


def _judge_final(stage, last_step):
    line = stage.observer.line_now()
    if max(line).step != last_step:
        stage.tell(f"the run ended at step {max(line).step}; it was to end at {last_step}")
    step = restored_step(stage.place.view, tell=stage.tell)
    if step != last_step:
        stage.tell(f"plain TensorFlow restores step {step}, not {last_step}")


def _judge_leftovers(stage):
    names = stage.place.view.names()
    line = stage.observer.line_now()
    for suffix in _PASSING_MARKS:
        for checkpoint in sorted(facts.with_suffix(names, suffix)):
            stage.tell(f"left over: {checkpoint.object(suffix)}")
    for checkpoint in sorted(facts.committed(names) - line):
        stage.tell(f"left over: the void commit of {checkpoint}")
    for checkpoint in sorted(facts.with_data(names) - facts.committed(names)):
        stage.tell(f"left over: data of {checkpoint}, which has no commit")
    for name in names:
        if name.startswith("leases/"):
            stage.tell(f"left over: {name}")
    for path in stage.place.strays():
        stage.tell(f"left over: {path}")


def _judge_ledger(stage, eval_set):
    entries = stage.observer.entries_of(eval_set)
    for checkpoint in sorted(stage.observer.sure | stage.observer.line_now()):
        if checkpoint not in entries:
            stage.tell(f"checkpoint {checkpoint} has no entry in {eval_set}")
