"""Heartbeats that a thread writes, so that no step waits for the store.

The loop posts what it is doing; the thread writes the newest post, and only when there is a new
one. So a loop that hangs falls silent, although the thread lives.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import NamedTuple

from tandem.checkpoints.attempts import Attempt, stop_if_superseded
from tandem.checkpoints.heartbeats import TRAINER, Fact, Heartbeat
from tandem.checkpoints.objects import ObjectStore
from tandem.checkpoints.surroundings import SYSTEM, Surroundings
from tandem.errors import AttemptSupersededError, StoreError

logger = logging.getLogger(__name__)

_CLOSING_SECONDS = 5.0


class _Post(NamedTuple):
    phase: str
    step: int | None
    facts: dict[str, Fact]


class Beats:
    """Writes a trainer's heartbeat; a context, which writes the last post before it ends.

    Where a newer attempt beats, this one has been superseded: `raise_failure` says so.

    Args:
        store: the run's.
        attempt: whose heartbeat it is.
        interval_seconds: least time between two beats of the same phase; a new phase is written at
            once.
        closing_seconds: how long the last post may take, asked when the end has come.
        more_facts: asked at each beat, in the thread, for what every one says.
        on_failure: told of what a beat has failed with.
        surroundings: for the records.
    """

    def __init__(
        self,
        store: ObjectStore,
        attempt: Attempt,
        *,
        interval_seconds: float,
        closing_seconds: Callable[[], float] = lambda: _CLOSING_SECONDS,
        more_facts: Callable[[], Mapping[str, Fact]] = dict,
        on_failure: Callable[[BaseException], None] = lambda error: None,
        surroundings: Surroundings = SYSTEM,
    ) -> None:
        self._store = store
        self._attempt = attempt
        self._interval = interval_seconds
        self._closing_seconds = closing_seconds
        self._surroundings = surroundings
        self._heartbeat = Heartbeat(
            store,
            TRAINER,
            attempt=attempt.number,
            more_facts=more_facts,
            surroundings=surroundings,
        )
        self._on_failure = on_failure
        self._condition = threading.Condition()
        self._post: _Post | None = None
        self._is_closed = False
        self._is_failing = False
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="heartbeats", daemon=True)

    def __enter__(self) -> Beats:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._condition:
            self._is_closed = True
            self._condition.notify_all()
        # A store that hangs here hangs for no other reason than it did before: leave it behind.
        self._thread.join(max(0.0, self._closing_seconds()))

    def post(self, phase: str, step: int | None = None, **facts: Fact) -> None:
        """Says what the loop is doing; returns at once."""
        with self._condition:
            self._post = _Post(phase, step, facts)
            self._condition.notify_all()

    def raise_failure(self) -> None:
        """Raises AttemptSupersededError once that was seen, or what the thread died of."""
        if self._failure is not None:
            raise self._failure

    def _work(self) -> None:
        try:
            while (post := self._next()) is not None:
                self._write(post)
                self._pause(post.phase)
        except BaseException as error:  # noqa: BLE001  # raised in the loop
            self._failure = error

    def _next(self) -> _Post | None:
        with self._condition:
            self._condition.wait_for(lambda: self._post is not None or self._is_closed)
            post, self._post = self._post, None
            return post

    def _pause(self, phase: str) -> None:
        """Lets the interval go by, unless another phase begins or the end is near."""
        with self._condition:
            self._condition.wait_for(
                lambda: self._is_closed or (self._post is not None and self._post.phase != phase),
                timeout=self._interval,
            )

    def _write(self, post: _Post) -> None:
        try:
            is_written = self._heartbeat.beat(post.phase, post.step, **post.facts)
            if not is_written:
                stop_if_superseded(self._store, self._attempt)
        except AttemptSupersededError:
            raise
        except StoreError as error:
            # Saves meet the same trouble, and decide about it.
            self._on_failure(error)
            if not self._is_failing:
                logger.warning("the heartbeat can't be written: %s", error)
            self._is_failing = True
        else:
            if self._is_failing:
                logger.info("the heartbeat is written again")
            self._is_failing = False
