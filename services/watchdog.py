"""A look from outside of the loop: where does it hang?

A loop that hangs writes no heartbeat, so all that others see is silence. But it says where it goes
before it goes there (`Where`), and a thread that looks from time to time writes that into the run
folder, with the stack of the loop's thread, as the record `heartbeats/watchdog-PROCESS.json`: phase
`hanging` while it lasts, `recovered` afterwards. The process's own heartbeat stays the loop's.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable
from pathlib import PurePath
from types import FrameType, TracebackType
from typing import Literal, NamedTuple

from tandem.checkpoints import names, writing
from tandem.checkpoints.heartbeats import Heartbeat, HeartbeatRecord, watchdog_process
from tandem.checkpoints.objects import ObjectStore
from tandem.checkpoints.records import decode
from tandem.checkpoints.surroundings import SYSTEM, Surroundings
from tandem.errors import StoreError, TandemError
from tandem.telemetry.health import Health

logger = logging.getLogger(__name__)

THREAD_NAME = "watchdog"

_PATIENCE_SECONDS = 60.0
_LOOK_SECONDS = 15.0
_TELL_SECONDS = 25.0  # every second look, whether it comes a little early or late
_CLOSING_SECONDS = 1.0

_MAX_FRAMES = 8
_MAX_STACK_CHARACTERS = 1500
_PATH_PARTS = 3  # of a file's path, from its end: site-packages are a long way down


class Place(NamedTuple):
    """Where a loop can be.

    Attributes:
        name: for people, as "waiting for data".
        patience_seconds: how long it may be there before it is taken for hanging.
    """

    name: str
    patience_seconds: float = _PATIENCE_SECONDS


class Stay(NamedTuple):
    """Where a loop is, and since when by its monotonic clock."""

    place: Place
    since: float


class Where:
    """Where a loop is: the loop assigns `at`, again too when it comes by the same place anew."""

    def __init__(self, place: Place, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self.stay = Stay(place, monotonic())
        """May be read from any thread."""

    @property
    def at(self) -> Place:
        """Where it is."""
        return self.stay.place

    @at.setter
    def at(self, place: Place) -> None:
        self.stay = Stay(place, self._monotonic())


Word = Literal["hanging", "recovered"]


def word_about(
    *, silent_seconds: float, patience_seconds: float, told_seconds_ago: float | None
) -> Word | None:
    """What is to be told of a loop now, if anything.

    Args:
        silent_seconds: since the loop came by.
        patience_seconds: how long it may be silent where it is.
        told_seconds_ago: since it was last told to be hanging; None unless it is told to.
    """
    if silent_seconds < patience_seconds:
        return None if told_seconds_ago is None else "recovered"
    if told_seconds_ago is None or told_seconds_ago >= _TELL_SECONDS:
        return "hanging"
    return None


class Watchdog:
    """Watches the loop of the thread that enters this context.

    Args:
        store: the run's, where the record goes.
        process: whose loop it is, as its heartbeat is called.
        where: the loop is.
        health: knows the loop's phase and step.
        host: pod or machine.
        attempt: the trainer's.
        least_patience: seconds that the loop may be silent wherever it is, by its own pace.
        look_seconds: between two looks.
        surroundings: clocks, randomness.
    """

    def __init__(
        self,
        store: ObjectStore,
        process: str,
        *,
        where: Where,
        health: Health,
        host: str,
        attempt: int | None = None,
        least_patience: Callable[[], float] = lambda: 0.0,
        look_seconds: float = _LOOK_SECONDS,
        surroundings: Surroundings = SYSTEM,
    ) -> None:
        self._store = store
        self._name = names.heartbeat_name(watchdog_process(process))
        self._where = where
        self._health = health
        self._host = host
        self._least_patience = least_patience
        self._look_seconds = look_seconds
        self._monotonic = surroundings.monotonic
        self._record = Heartbeat(
            store, watchdog_process(process), attempt=attempt, surroundings=surroundings
        )
        self._told_at: float | None = None
        self._watched: int | None = None
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._work, name=THREAD_NAME, daemon=True)

    def __enter__(self) -> Watchdog:
        self._watched = threading.get_ident()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ending.set()
        self._thread.join(_CLOSING_SECONDS)

    def look(self) -> None:
        """Looks once, and tells what is to be told."""
        now = self._monotonic()
        place, since = self._where.stay
        word = word_about(
            silent_seconds=now - since,
            patience_seconds=max(place.patience_seconds, self._least_patience()),
            told_seconds_ago=None if self._told_at is None else now - self._told_at,
        )
        if word is not None:
            self._tell(word, place, silent_seconds=now - since)

    def _work(self) -> None:
        self._safely(self._withdraw_what_a_forerunner_left)
        while not self._ending.wait(self._look_seconds):
            self._safely(self.look)
        if self._told_at is not None:  # the loop has come to its end: it hangs no more
            self._safely(lambda: self._tell("recovered", self._where.at, silent_seconds=0.0))

    def _safely(self, act: Callable[[], None]) -> None:
        """A store that is out of reach is the loop's to tell of; the next look is the next try."""
        try:
            act()
        except (TandemError, OSError) as error:
            logger.warning("the watchdog's record can't be written: %s", error)
        except Exception:
            logger.exception("the watchdog failed")

    def _tell(self, word: Word, place: Place, *, silent_seconds: float) -> None:
        report = self._health.report()
        is_hanging = word == "hanging"
        self._told_at = self._monotonic() if is_hanging else None
        stack = stack_of(self._watched) if is_hanging else None
        self._record.beat(
            word,
            report.step,
            loop_phase=report.phase,
            at=place.name,
            silent_seconds=round(silent_seconds, 1),
            stack=stack,
            host=self._host,
        )
        if is_hanging:  # after the record, as the loop may hang with the log's lock
            logger.warning("no progress for %.0f s, %s: %s", silent_seconds, place.name, stack)

    def _withdraw_what_a_forerunner_left(self) -> None:
        """A process that was killed while it hung could not say that this is over."""
        standing = writing.find(self._store, self._name)
        if standing is None:
            return
        try:
            phase = decode(standing.data, HeartbeatRecord, name=self._name).phase
        except StoreError:
            phase = "hanging"  # damaged: the next one to write it puts it right
        if phase == "hanging":
            self._tell("recovered", self._where.at, silent_seconds=0.0)


def stack_of(thread: int | None) -> str | None:
    """The innermost frames of a thread, the innermost first: `file:line function < ...`."""
    frame: FrameType | None = sys._current_frames().get(thread) if thread is not None else None
    shown: list[str] = []
    while frame is not None and len(shown) < _MAX_FRAMES:
        file = "/".join(PurePath(frame.f_code.co_filename).parts[-_PATH_PARTS:])
        shown.append(f"{file}:{frame.f_lineno} {frame.f_code.co_name}")
        frame = frame.f_back
    return " < ".join(shown)[:_MAX_STACK_CHARACTERS] or None
