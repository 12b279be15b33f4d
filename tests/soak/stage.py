"""One run with its trainer and its evaluators, and whoever starts them again."""

import itertools
import signal
import time

from services.exits import Exit
from tests.soak.observer import Observer
from tests.soak.processes import Process

LEASE_SECONDS = 3.0
EVAL_SETS = ("day", "night")

_LOOK_SECONDS = 0.25
_HANG_SECONDS = 300.0


class RoundLostError(Exception):
    """The run makes no progress any more; it is given up."""


class Stage:
    """A run on a place.

    Args:
        place: where the run folder is.
        arguments: flags that name the experiment.
        logs: folder for the processes' output.
        policy: the evaluator's.
        tell: is told of each violation.
    """

    def __init__(self, place, *, arguments, logs, policy, tell):
        self.place = place
        self.tell = tell
        self.observer = Observer(place.view, eval_sets=EVAL_SETS, tell=tell)
        self._arguments = arguments
        self._logs = logs
        self._policy = policy
        self._numbers = itertools.count(1)
        self._processes = []
        self.owner = "soak"
        self.trainer = self.start_trainer()
        self.evaluator = self.start_evaluator("first")

    def start_trainer(self, *more):
        return self._start(
            "trainer",
            *("--checkpoint-every-n", 6, "--max-to-keep", 2, "--max-unevaluated", 2),
            *("--log-interval", 2, "--heartbeat-interval", 0.5, "--summary-every-n", 20),
            *("--owner", self.owner, *more),
        )

    def start_evaluator(self, name):
        evaluator = self._start(
            "evaluator",
            *("--name", name, "--policy", self._policy),
            *("--poll-interval", 0.2, "--lease-seconds", LEASE_SECONDS, "--wait-interval", 600),
        )
        evaluator.role = name
        return evaluator

    def _start(self, kind, *flags):
        name = f"{kind}-{next(self._numbers):03d}"
        process = Process(
            name,
            f"services.{kind}",
            ["--run", self.place.location, *self._arguments, *flags],
            log=self._logs / f"{name}.log",
            environment=self.place.environment,
        )
        self._processes.append(process)
        return process

    def tend(self):
        """Starts again what ended, as a Job or a Deployment would, and judges how it ended."""
        for process in list(self._processes):
            has_ended = process.exit_code is not None
            for line in process.alarming_lines():
                self.tell(f"the log of {process.name} says: {line}")
            if has_ended:
                self._processes.remove(process)
                self._judge(process)
        if self.trainer.exit_code is not None and self.trainer.returns:
            self.trainer = self.start_trainer()
        if self.evaluator.exit_code is not None and self.evaluator.returns:
            self.evaluator = self.start_evaluator(self.evaluator.role)

    def _judge(self, process):
        if process.exit_code not in process.may_exit_with:
            allowed = sorted(process.may_exit_with) or "to go on running"
            self.tell(f"{process.name} ended with {process.exit_code}, expected was {allowed}")

    def stop_trainer(self):
        """SIGTERM: it saves and says "resume me"."""
        self._terminate(self.trainer)

    def stop_evaluator(self):
        self._terminate(self.evaluator)

    def _terminate(self, process):
        allowed = [Exit.SAVED_RESUME_ME]
        if not process.text:  # it has no handler yet
            allowed.append(-signal.SIGTERM)
        process.send(signal.SIGTERM, may_exit_with=allowed)

    def wait_until(self, condition, what):
        """Tends until the condition holds; a run where that takes for ever is given up."""
        deadline = time.monotonic() + _HANG_SECONDS
        while not condition():
            if time.monotonic() > deadline:
                self._give_up(what)
            self.tend()
            time.sleep(_LOOK_SECONDS)

    def wait_for_end(self, process, what):
        """Its exit code."""
        if process.wait(_HANG_SECONDS) is None:
            self._give_up(what)
        return process.exit_code

    def _give_up(self, what):
        self.tell(f"{what}: not within {_HANG_SECONDS:g} s")
        for process in self._processes:
            process.say_where_it_hangs()
        raise RoundLostError

    def end(self):
        """Ends all processes."""
        for process in self._processes:
            process.end()
