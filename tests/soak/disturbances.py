"""What may happen to the processes of a run. Each says what it does, and does it."""

import signal
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from services.exits import Exit
from tests.soak.aims import Aim
from tests.soak.stage import LEASE_SECONDS

_START_SECONDS = 12.0
_CHANCE_SECONDS = 25.0


class Disturbance(NamedTuple):
    """Something that happens.

    Attributes:
        what: in words.
        act: does it to a stage.
    """

    what: str
    act: Callable[[Any], None]


def choose(random):
    """A disturbance of the processes, by chance."""
    makers = {
        _kill_trainer: 5,
        _kill_evaluator: 4,
        _kill_both: 2,
        _kill_while_starting: 1,
        terminate_trainer: 2,
        _terminate_evaluator: 1,
        _stall_trainer: 2,
        _stall_evaluator: 2,
        _start_two_trainers: 1,
    }
    (make,) = random.choices(list(makers), weights=list(makers.values()))
    return make(random)


def _moment(random, role):
    """A moment of a process, in words, and a function that waits for it."""
    aims = [aim for aim in Aim if aim.value.role == role]
    aim = random.choice([None, *aims])
    if aim is not None:
        return f"at {aim}", lambda stage: stage.place.wait_for(aim, random=random)
    seconds = random.uniform(0.0, 2.0)
    return f"after {seconds:.2f} s", lambda stage: time.sleep(seconds)


def _kill_trainer(random):
    words, wait = _moment(random, "trainer")

    def act(stage):
        wait(stage)
        stage.trainer.kill()

    return Disturbance(f"kill -9 of the trainer {words}", act)


def _kill_evaluator(random):
    words, wait = _moment(random, "evaluator")

    def act(stage):
        wait(stage)
        stage.evaluator.kill()

    return Disturbance(f"kill -9 of the evaluator {words}", act)


def _kill_both(random):
    role = random.choice(["trainer", "evaluator"])
    words, wait = _moment(random, role)

    def act(stage):
        wait(stage)
        stage.trainer.kill()
        stage.evaluator.kill()

    return Disturbance(f"kill -9 of both {words} of the {role}", act)


def _kill_while_starting(random):
    role = random.choice(["trainer", "evaluator"])
    seconds = random.uniform(1.0, _START_SECONDS)

    def act(stage):
        getattr(stage, role).kill()
        stage.tend()
        time.sleep(seconds)
        getattr(stage, role).kill()

    return Disturbance(f"kill -9 of the {role}, and again {seconds:.1f} s after its start", act)


def terminate_trainer(random):
    """It saves and ends, and another one goes on."""
    words, wait = _moment(random, "trainer")

    def act(stage):
        wait(stage)
        stage.stop_trainer()
        stage.wait_for_end(stage.trainer, "the trainer's end after SIGTERM")

    return Disturbance(f"SIGTERM to the trainer {words}", act)


def _terminate_evaluator(random):
    words, wait = _moment(random, "evaluator")

    def act(stage):
        wait(stage)
        stage.stop_evaluator()
        stage.wait_for_end(stage.evaluator, "the evaluator's end after SIGTERM")

    return Disturbance(f"SIGTERM to the evaluator {words}", act)


def _stall_trainer(random):
    words, wait = _moment(random, "trainer")
    late = random.uniform(0.0, 6.0)

    def act(stage):
        wait(stage)
        old = stage.trainer
        old.send(signal.SIGSTOP)
        attempts = stage.observer.num_attempts
        stage.owner = f"{stage.owner.partition('-')[0]}-{attempts}"
        stage.trainer = stage.start_trainer("--takeover")
        # One that was stopped with a lock in its hand holds the other one up.
        _wait_at_most(_CHANCE_SECONDS, stage, lambda: stage.observer.num_attempts > attempts)
        time.sleep(late)
        old.send(signal.SIGCONT, may_exit_with=[Exit.SUPERSEDED])
        stage.wait_for_end(old, "the end of a trainer that was superseded")

    return Disturbance(f"SIGSTOP of the trainer {words}, takeover, SIGCONT {late:.1f} s later", act)


def _stall_evaluator(random):
    words, wait = _moment(random, "evaluator")
    late = random.uniform(0.0, 3.0)
    first_goes = random.random() < 0.5

    def act(stage):
        wait(stage)
        first = stage.evaluator
        began = time.monotonic()
        first.send(signal.SIGSTOP)
        second = stage.start_evaluator("second" if first.role == "first" else "first")
        _wait_at_most(_CHANCE_SECONDS, stage, lambda: "checkpoint " in second.text)
        time.sleep(max(late, began + LEASE_SECONDS + 0.5 - time.monotonic()))
        first.send(signal.SIGCONT)
        time.sleep(late)
        stage.evaluator = first if first_goes else second
        stage.stop_evaluator()
        stage.wait_for_end(stage.evaluator, "the evaluator's end after SIGTERM")
        stage.evaluator = second if first_goes else first

    return Disturbance(f"SIGSTOP of the evaluator {words} beyond its lease, a second one", act)


def _start_two_trainers(random):
    apart = random.choice([0.0, random.uniform(0.0, 3.0)])

    def act(stage):
        stage.trainer.kill()
        rivals = [stage.start_trainer()]
        time.sleep(apart)
        rivals.append(stage.start_trainer())
        stage.trainer = rivals[0]
        for rival in rivals:
            rival.returns = False
            rival.may_exit_with = frozenset({Exit.SUPERSEDED})
        stage.wait_until(
            lambda: any(rival.exit_code is not None for rival in rivals),
            "one of two trainers giving way",
        )
        stage.trainer = next((rival for rival in rivals if rival.exit_code is None), rivals[0])
        stage.trainer.returns = True
        stage.trainer.may_exit_with = frozenset()

    return Disturbance(f"kill -9 of the trainer, two new ones {apart:.1f} s apart", act)


def _wait_at_most(seconds, stage, condition):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not condition():
        stage.observer.look()
        time.sleep(0.2)
