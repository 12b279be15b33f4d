"""Many questions at once, and no longer than a person waits.

The threads are daemons: one that a store or an API server keeps hanging does not keep the process.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Hashable, Mapping
from typing import Generic, TypeVar

_Key = TypeVar("_Key", bound=Hashable)
_Answer = TypeVar("_Answer")


def seconds_since_start() -> float:
    """How long this process has been there, its start and imports included; 0 if nobody can say.

    Source: proc_pid_stat(5), field 22, in clock ticks since the system's boot.
    """
    try:
        with open("/proc/self/stat", encoding="ascii", errors="replace") as status:
            fields = status.read().rpartition(")")[2].split()  # the name before may have spaces
        started = int(fields[19]) / os.sysconf("SC_CLK_TCK")
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - started)
    except (OSError, ValueError, IndexError, AttributeError):
        return 0.0


class TooLateError(Exception):
    """No answer came in time."""


class Answer(Generic[_Answer]):
    """What a question came to: a value, or what was raised."""

    def __init__(self, ask: Callable[[], _Answer]) -> None:
        self._ask = ask
        self._value: _Answer | None = None
        self._error: BaseException | None = None
        self._is_there = threading.Event()

    def find(self) -> None:
        """Asks; in a thread."""
        try:
            self._value = self._ask()
        except BaseException as error:  # noqa: BLE001  # raised where the answer is wanted
            self._error = error
        self._is_there.set()

    def wait(self, seconds: float) -> _Answer:
        """The value.

        Raises:
            TooLateError: there is none yet.
        """
        if not self._is_there.wait(max(0.0, seconds)):
            raise TooLateError
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]  # set, when nothing was raised


class Hurry:
    """Asks in threads, up to one deadline for everything; a context, after which they end.

    Args:
        seconds: until the deadline.
        threads: how many questions are open at once.
        monotonic: seconds.
    """

    def __init__(
        self,
        *,
        seconds: float,
        threads: int = 16,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._monotonic = monotonic
        self._began = monotonic()
        self._deadline = self._began + seconds
        self._threads = threads
        self._started = 0
        self._waiting: queue.SimpleQueue[Answer[object] | None] = queue.SimpleQueue()

    def __enter__(self) -> Hurry:
        return self

    def __exit__(self, *args: object) -> None:
        for _ in range(self._started):
            self._waiting.put(None)

    @property
    def seconds_gone(self) -> float:
        """Since the beginning."""
        return self._monotonic() - self._began

    def ask(self, question: Callable[[], _Answer]) -> Answer[_Answer]:
        """Returns at once."""
        answer = Answer(question)
        self._waiting.put(answer)  # type: ignore[arg-type]  # a thread doesn't look at the value
        if self._started < self._threads:
            self._started += 1
            threading.Thread(target=self._work, name="hurry", daemon=True).start()
        return answer

    def result(self, answer: Answer[_Answer]) -> _Answer:
        """Waits for an answer, up to the deadline.

        Raises:
            TooLateError: it didn't come in time.
        """
        return answer.wait(self._deadline - self._monotonic())

    def ask_all(
        self, questions: Mapping[_Key, Callable[[], _Answer]]
    ) -> dict[_Key, Answer[_Answer]]:
        """Asks several things."""
        return {key: self.ask(question) for key, question in questions.items()}

    def _work(self) -> None:
        while (answer := self._waiting.get()) is not None:
            answer.find()
