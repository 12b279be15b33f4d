"""What a process does, told to the cluster: Events about its Job or Deployment, and annotations.

A thread talks to the API server, so that no step and no evaluation waits for it. It is company, not
a part of the work: what the server refuses is said once in the log and left out from then on, and
while it is out of reach the newest words wait.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from types import TracebackType

from tandem.errors import (
    ClusterError,
    ClusterNotFoundError,
    ClusterRefusedError,
    ClusterUnavailableError,
)
from tandem.kube.budgets import Budget, Memory, Said
from tandem.kube.objects import EventText, Namespace, Subject

logger = logging.getLogger(__name__)

DOMAIN = "tandem.dev"

_ANNOTATE_SECONDS = 30.0
_AGAIN_SECONDS = 15.0
_PHASE_SECONDS = 5.0
_LAST_AGAIN_SECONDS = 0.5
_MAX_WAITING = 20


def silent() -> Reporter:
    """One that tells nobody."""
    return Reporter(None, None, closing_seconds=lambda: 0.0)


class Reporter:
    """Tells a cluster about one object; a context. Its methods return at once, from any thread.

    Args:
        namespace: where the object is; None tells nobody.
        subject: the object.
        monotonic: seconds.
        annotate_seconds: least time between two updates of annotations.
        phase_seconds: the same, when their `phase` has changed.
        again_seconds: time until the next try when the API server is out of reach.
        closing_seconds: how long the last words may take, asked when the end has come.
    """

    def __init__(
        self,
        namespace: Namespace | None,
        subject: Subject | None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        annotate_seconds: float = _ANNOTATE_SECONDS,
        phase_seconds: float = _PHASE_SECONDS,
        again_seconds: float = _AGAIN_SECONDS,
        closing_seconds: Callable[[], float],
    ) -> None:
        self._namespace = namespace
        self._subject = subject
        self._monotonic = monotonic
        self._annotate_seconds = annotate_seconds
        self._phase_seconds = phase_seconds
        self._again_seconds = again_seconds
        self._closing_seconds = closing_seconds
        self._condition = threading.Condition()
        self._events: deque[EventText] = deque(maxlen=_MAX_WAITING)
        self._annotations: dict[str, str] = {}
        self._annotated: dict[str, str] = {}
        self._annotated_at = float("-inf")
        self._failed_at = float("-inf")
        self._is_closing = False
        self._budget = Budget(monotonic=monotonic)
        self._memory = Memory()
        self._uid: str | None = None
        self._refused: set[str] = set()
        self._has_said: set[str] = set()
        self._thread = threading.Thread(target=self._work, name="cluster", daemon=True)

    def __enter__(self) -> Reporter:
        """Begins to tell."""
        if self._namespace is not None and self._subject is not None:
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Says what is left to say, for some seconds."""
        with self._condition:
            self._is_closing = True
            self._condition.notify_all()
        if self._thread.ident is not None:
            self._thread.join(max(0.0, self._closing_seconds()))

    def event(self, reason: str, message: str, *, is_warning: bool = False) -> None:
        """Has an Event written.

        Args:
            reason: a word in CamelCase.
            message: a sentence.
            is_warning: whether someone should look.
        """
        with self._condition:
            if len(self._events) == _MAX_WAITING and self._thread.ident is not None:
                lost = self._events[0].reason
                self._say_once(
                    f"more than {_MAX_WAITING} Events wait for the API server: the oldest of them, "
                    f"{lost} first, are left out",
                    about="waiting",
                )
            self._events.append(EventText(reason, message, is_warning))
            self._condition.notify_all()

    def annotate(self, **values: object) -> None:
        """Has annotations `tandem.dev/NAME` set, soon when the phase is a new one.

        Args:
            values: by name, whose underscores become hyphens; None leaves one as it is.
        """
        with self._condition:
            nothing_waited = self._annotations == self._annotated
            for name, value in values.items():
                if value is not None:
                    self._annotations[f"{DOMAIN}/{name.replace('_', '-')}"] = str(value)
            if nothing_waited or self._is_due():  # else the thread will wake up for the earlier one
                self._condition.notify_all()

    def _work(self) -> None:
        try:
            self._keep_telling()
        except Exception:
            logger.exception("the cluster is told nothing any more")

    def _keep_telling(self) -> None:
        while self._wait():
            try:
                self._tell()
            except ClusterUnavailableError as error:
                if self._is_closing:
                    time.sleep(_LAST_AGAIN_SECONDS)  # as often as whoever closes waits for it
                    continue
                self._say_once(f"the cluster can't be told for now: {error}", about="outages")
                self._failed_at = self._monotonic()

    def _wait(self) -> bool:
        """Until there is something to tell; False at the end, when there is nothing any more."""
        with self._condition:
            while not self._is_due():
                if self._is_closing:
                    return False
                self._condition.wait(timeout=self._seconds_to_wait())
            return True

    def _is_due(self) -> bool:
        if self._is_closing:
            return bool(self._events) or self._annotations != self._annotated
        if self._monotonic() - self._failed_at < self._again_seconds:
            return False
        return bool(self._events) or self._is_annotation_due()

    def _is_annotation_due(self) -> bool:
        return self._annotations != self._annotated and self._seconds_to_annotations() <= 0

    def _seconds_to_annotations(self) -> float:
        phase = f"{DOMAIN}/phase"
        is_new_phase = self._annotations.get(phase) != self._annotated.get(phase)
        least = self._phase_seconds if is_new_phase else self._annotate_seconds
        return self._annotated_at + least - self._monotonic()

    def _seconds_to_wait(self) -> float | None:
        if not self._events and self._annotations == self._annotated:
            return None
        again_in = self._failed_at + self._again_seconds - self._monotonic()
        return max(0.0, again_in, 0.0 if self._events else self._seconds_to_annotations())

    def _tell(self) -> None:
        while self._events:
            event = self._events[0]
            self._try("Events", lambda: self._write(event))  # noqa: B023  # called at once
            with self._condition:
                if self._events and self._events[0] is event:
                    self._events.popleft()
        with self._condition:
            if not (self._is_closing or self._is_annotation_due()):
                return
            annotations = dict(self._annotations)
        if annotations != self._annotated:
            self._try("annotations", lambda: self._annotate(annotations))
            self._annotated, self._annotated_at = annotations, self._monotonic()

    def _try(self, what: str, call: Callable[[], None]) -> None:
        if what in self._refused:
            return
        try:
            call()
        except ClusterUnavailableError:
            raise
        except (ClusterRefusedError, ClusterNotFoundError) as error:
            self._refused.add(what)
            self._say_once(f"going on without {what} in the cluster: {error}", about=what)
        except ClusterError as error:  # of this one alone
            logger.warning("the cluster was not told: %s", error)

    def _say_once(self, text: str, *, about: str) -> None:
        if about not in self._has_said:
            self._has_said.add(about)
            logger.warning("%s", text)

    def _annotate(self, annotations: dict[str, str]) -> None:
        assert self._namespace is not None
        assert self._subject is not None
        self._namespace.annotate(self._subject, annotations)

    def _write(self, event: EventText) -> None:
        assert self._namespace is not None
        assert self._subject is not None
        said = self._memory.find(event.reason, event.message)
        if said is not None and self._repeat(said, event):
            return
        if not self._budget.take():
            self._say_once(f"too many Events, {event.reason} is left out", about="budget")
            return
        if self._uid is None:
            self._uid = self._namespace.uid(self._subject)
        name = self._namespace.create_event(self._subject, self._uid, event)
        self._memory.note(event.reason, event.message, Said(name, 1))

    def _repeat(self, said: Said, event: EventText) -> bool:
        """False when the cluster has forgotten the first one."""
        assert self._namespace is not None
        if not self._budget.take():
            return True
        try:
            self._namespace.repeat_event(said.name, count=said.times + 1)
        except ClusterNotFoundError:
            self._memory.forget(event.reason, event.message)
            return False
        self._memory.note(event.reason, event.message, Said(said.name, said.times + 1))
        return True
