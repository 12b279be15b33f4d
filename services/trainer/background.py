"""One thread that does one job after another, and the one place where the next job waits."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

logger = logging.getLogger(__name__)

THREAD_NAME = "checkpoint-writer"

SWITCH_SECONDS = 0.0005
"""How long the trainer's threads may keep the interpreter from each other. With Python's own 5 ms
the step loop would wait that long each time it comes back from TensorFlow while a save goes on."""


class Job(NamedTuple):
    """Something to do behind the loop.

    Attributes:
        act: does it.
        let_go: always called afterwards, also when the job was dropped before it began.
    """

    act: Callable[[], None]
    let_go: Callable[[], None]


class Background:
    """Does jobs in the order in which they were given; the first one that fails ends that.

    What a job raises is kept, whatever it is, and every later call but `close` raises it in the
    thread that calls: nothing fails silently. The thread is a daemon: where a job hangs for good,
    the process can leave all the same.
    """

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._condition = threading.Condition()
        self._waiting: Job | None = None
        self._is_busy = False
        self._is_closed = False
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name=THREAD_NAME, daemon=True)
        self._thread.start()

    @property
    def num_pending(self) -> int:
        """Jobs that are under way or wait: 0, 1 or 2."""
        with self._condition:
            return self._is_busy + (self._waiting is not None)

    def raise_failure(self) -> None:
        """Raises what a job has failed with, if one has."""
        if self._failure is not None:
            raise self._failure
        if not self._thread.is_alive():
            raise RuntimeError("the thread that writes checkpoints has ended")

    def put(self, job: Job) -> None:
        """Gives a job; the caller has seen that the place is free."""
        self.raise_failure()
        with self._condition:
            assert self._waiting is None, "one job waits already"
            self._waiting = job
            self._condition.notify_all()

    def wait_for_place(self, seconds: float) -> bool:
        """Whether a job can be given; waits up to some seconds for it."""
        return self._wait(lambda: self._waiting is None, seconds)

    def wait_until_idle(self, seconds: float) -> bool:
        """Whether nothing is under way or waits; waits up to some seconds for it."""
        return self._wait(lambda: self._waiting is None and not self._is_busy, seconds)

    def drop_waiting(self) -> bool:
        """Takes back the job that waits; False when there is none."""
        with self._condition:
            job, self._waiting = self._waiting, None
            self._condition.notify_all()
        if job is not None:
            job.let_go()
        return job is not None

    def close(self, seconds: float) -> bool:
        """Does no job any more after the one under way, for whose end it waits up to some seconds.

        Returns:
            Whether it has ended.
        """
        with self._condition:
            self._is_closed = True
            self._condition.notify_all()
        self._thread.join(max(0.0, seconds))
        self.drop_waiting()
        return not self._thread.is_alive()

    def _wait(self, is_so: Callable[[], bool], seconds: float) -> bool:
        with self._condition:
            self._condition.wait_for(
                lambda: is_so() or self._failure is not None, timeout=max(0.0, seconds)
            )
            self.raise_failure()
            return is_so()

    def _work(self) -> None:
        while (job := self._next()) is not None:
            with self._busy_until_done():
                try:
                    job.act()
                finally:
                    job.let_go()

    def _next(self) -> Job | None:
        with self._condition:
            self._condition.wait_for(lambda: self._waiting is not None or self._is_closed)
            if self._is_closed or self._failure is not None:
                return None
            job, self._waiting = self._waiting, None
            self._is_busy = True
            self._condition.notify_all()
            return job

    @contextlib.contextmanager
    def _busy_until_done(self) -> Iterator[None]:
        failure: BaseException | None = None
        try:
            yield
        except BaseException as error:  # noqa: BLE001  # raised where it is asked for
            failure = error
        with self._condition:
            self._is_busy = False
            self._failure = failure
            self._condition.notify_all()
        if failure is not None:
            self.drop_waiting()
