"""Processes that take turns on one clock: each is real code in a greenlet, and one runs at a time.

A process gives up its turn at each operation on the store and whenever it sleeps. Who is next is
drawn from the schedule's randomness, so a schedule is repeated exactly by its seed. Time stands
still while anybody can run; it jumps when all wait. Each process has a monotonic clock with an
offset of its own: no two agree on anything but on how long a second is.
"""

import itertools
from datetime import datetime, timezone

import greenlet

from tandem.checkpoints.surroundings import Surroundings

_WALL_CLOCK = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)


class KilledError(BaseException):
    """Ends a killed process; nobody catches it, and after it the store refuses every call."""


class EndlessError(Exception):
    """A schedule takes more operations than any that gets on would."""


class Process:
    """One process's life, from its start to its end.

    Attributes:
        name: says who it is, in traces and faults.
        operations: how many operations on the store it has begun.
        is_killed: whether it may do nothing any more.
        error: what it ended by, if by an exception.
        files_under_way: what a trainer is committing, by suffix; for the witness.
    """

    def __init__(self, schedule, name, program, *, starts_at):
        self.name = name
        self.operations = 0
        self.is_killed = False
        self.error = None
        self.files_under_way = {}
        self.wakes_at = starts_at
        self.wakes_after = 0  # operations of the whole schedule
        self._schedule = schedule
        self._offset = schedule.random.uniform(0.0, 1e6)
        self._program = program
        self.greenlet = greenlet.greenlet(self._run)

    @property
    def surroundings(self):
        """The run store's clock, sleep and randomness for this process."""
        return Surroundings(
            monotonic=self.monotonic,
            sleep=self.sleep,
            utc_now=lambda: _WALL_CLOCK,
            nonce=self._schedule.nonce,
            random=self._schedule.random.random,
        )

    def monotonic(self):
        return self._schedule.now + self._offset

    def sleep(self, seconds):
        self.wait(seconds=seconds)

    def wait(self, *, seconds=0.0, operations=0):
        """Gives up the turn until so much time and so many operations of others have passed."""
        if self.is_killed:
            raise KilledError
        self.wakes_at = self._schedule.now + seconds
        self.wakes_after = self._schedule.operations + operations
        self._schedule.switch()
        if self.is_killed:
            raise KilledError

    def die(self):
        self.is_killed = True
        raise KilledError

    def _run(self):
        try:
            self._program(self)
        except KilledError:
            pass
        except Exception as error:  # noqa: BLE001  # whoever started it looks at what it died of
            self.error = error


class Schedule:
    """Runs processes until none is left.

    Args:
        random: decides all that is not decided by the processes.
        max_operations: more are taken for an endless run.
        stickiness: how likely the process that has just run goes on, if it can.
    """

    def __init__(self, random, *, max_operations, stickiness=0.0):
        self.random = random
        self.now = 0.0
        self.operations = 0
        self.processes = []
        self._max_operations = max_operations
        self._stickiness = stickiness
        self._nonces = itertools.count(1)
        self._main = None
        self._running = None
        self._stopped_by = None

    def nonce(self):
        return f"{next(self._nonces):x}"

    def start(self, name, program, *, after=0.0):
        process = Process(self, name, program, starts_at=self.now + after)
        self.processes.append(process)
        return process

    def switch(self):
        self._main.switch()

    def stop(self, error):
        """Ends the schedule: `run` raises the error, and no process does anything any more."""
        if self._main is None or greenlet.getcurrent() is self._main:
            raise error
        self._stopped_by = error
        for process in self.processes:
            process.is_killed = True
        raise KilledError

    def give_up(self):
        """Ends all processes where they are."""
        self._kill_all()

    def run(self, *, on_end):
        """Runs all processes; `on_end(process)` is told of each end and may start others."""
        self._main = greenlet.getcurrent()
        try:
            while self.processes:
                process = self._next()
                process.greenlet.switch()
                if self._stopped_by is not None:
                    raise self._stopped_by
                if process.greenlet.dead:
                    self.processes.remove(process)
                    on_end(process)
                if self.operations > self._max_operations:
                    raise EndlessError(f"not at its end after {self.operations} operations")
        finally:
            self._kill_all()

    def _next(self):
        ready = [p for p in self.processes if self._is_ready(p)]
        if not ready:
            self._pass_time()
            ready = [p for p in self.processes if self._is_ready(p)]
        if self._running in ready and self.random.random() < self._stickiness:
            return self._running
        self._running = ready[int(self.random.random() * len(ready))]
        return self._running

    def _is_ready(self, process):
        return process.wakes_at <= self.now and process.wakes_after <= self.operations

    def _pass_time(self):
        """To the next one that waits for time alone; where there is none, a stalled one goes on."""
        waiting = [p for p in self.processes if p.wakes_after <= self.operations]
        chosen = min(waiting or self.processes, key=lambda p: (p.wakes_at, p.wakes_after))
        chosen.wakes_after = 0
        self.now = max(self.now, chosen.wakes_at)

    def _kill_all(self):
        for process in self.processes:
            process.is_killed = True
            if process.greenlet:  # has begun
                process.greenlet.throw(KilledError)
        self.processes.clear()
