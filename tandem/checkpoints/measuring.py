"""What the run store's operations come to: which, how they ended, how long they took.

An observer is told of each request. `GcsStore` tells of every one that it makes itself, so also of
a 503 that the next try heals; any other store is wrapped in a `MeasuredStore`. `RecentRequests` is
the observer that remembers the last minutes.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from tandem.checkpoints.objects import ObjectStat, ObjectStore, StoredObject, ignoring, nothing
from tandem.errors import (
    ConfigError,
    GenerationMismatchError,
    ObjectExistsError,
    ObjectNotFoundError,
    TandemError,
)

Operation = Literal[
    "create", "upload", "replace", "get", "read", "stat", "list", "delete", "download"
]
RequestOutcome = Literal["ok", "precondition", "missing", "refused", "error"]

_WINDOW_SECONDS = 300.0
_MAX_REQUESTS = 4096
_BULK: frozenset[Operation] = frozenset({"upload", "download"})


class Observer(Protocol):
    """Is told of each request, from any thread."""

    def __call__(
        self, operation: Operation, outcome: RequestOutcome, seconds: float | None
    ) -> None:
        """Takes note; must neither fail nor take long. None: nobody measured the time."""


def unobserved(operation: Operation, outcome: RequestOutcome, seconds: float | None) -> None:
    """Takes no note."""


def outcome_of(error: BaseException | None) -> RequestOutcome | None:
    """How a request ended that raised this; None when it was the caller that ended it."""
    if error is None:
        return "ok"
    if isinstance(error, (ObjectExistsError, GenerationMismatchError)):
        return "precondition"
    if isinstance(error, ObjectNotFoundError):
        return "missing"
    if isinstance(error, ConfigError):  # no credentials, no permission, no such bucket
        return "refused"
    return "error" if isinstance(error, (TandemError, OSError)) else None


@contextlib.contextmanager
def observed(
    operation: Operation, observer: Observer, *, monotonic: Callable[[], float]
) -> Iterator[None]:
    """Tells the observer of the request that is made inside."""
    began = monotonic()
    failure: BaseException | None = None
    try:
        yield
    except BaseException as error:
        failure = error
        raise
    finally:
        outcome = outcome_of(failure)
        if outcome is not None:
            observer(operation, outcome, monotonic() - began)


class MeasuredStore:
    """A store whose operations an observer is told of.

    Args:
        store: does the work.
        observer: is told.
        monotonic: seconds.
    """

    def __init__(
        self,
        store: ObjectStore,
        observer: Observer,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._observer = observer
        self._monotonic = monotonic

    @property
    def location(self) -> str:
        """See `ObjectStore`, as for all that follow."""
        return self._store.location

    def create(self, name: str, data: bytes) -> ObjectStat:
        """Measured."""
        with self._observed("create"):
            return self._store.create(name, data)

    def create_from_file(
        self, name: str, path: Path, *, on_bytes: Callable[[int], None] = ignoring
    ) -> ObjectStat:
        """Measured, as an upload."""
        with self._observed("upload"):
            return self._store.create_from_file(name, path, on_bytes=on_bytes)

    def replace(self, name: str, data: bytes, *, generation: str | None) -> ObjectStat:
        """Measured."""
        with self._observed("replace"):
            return self._store.replace(name, data, generation=generation)

    def get(self, name: str) -> StoredObject:
        """Measured."""
        with self._observed("get"):
            return self._store.get(name)

    def read(self, name: str, *, start: int, size: int) -> bytes:
        """Measured."""
        with self._observed("read"):
            return self._store.read(name, start=start, size=size)

    def stat(self, name: str) -> ObjectStat:
        """Measured."""
        with self._observed("stat"):
            return self._store.stat(name)

    def generation(self, name: str) -> str:
        """Measured, as a stat."""
        with self._observed("stat"):
            return self._store.generation(name)

    def list_times(self, prefix: str) -> dict[str, float]:
        """Measured, as a list."""
        with self._observed("list"):
            return self._store.list_times(prefix)

    def list(self, prefix: str) -> list[str]:
        """Measured."""
        with self._observed("list"):
            return self._store.list(prefix)

    def delete(self, name: str, *, generation: str) -> None:
        """Measured."""
        with self._observed("delete"):
            self._store.delete(name, generation=generation)

    def download(
        self, name: str, path: Path, *, on_piece: Callable[[], None] = nothing
    ) -> ObjectStat:
        """Measured."""
        with self._observed("download"):
            return self._store.download(name, path, on_piece=on_piece)

    def local_path(self, name: str) -> Path | None:
        """Asks nothing of the store."""
        return self._store.local_path(name)

    def _observed(self, operation: Operation) -> contextlib.AbstractContextManager[None]:
        return observed(operation, self._observer, monotonic=self._monotonic)


def principal_of(store: ObjectStore) -> str | None:
    """The account that a store in a bucket knows this process by, once somebody has said."""
    principal = getattr(store, "principal", None)
    return principal if isinstance(principal, str) else None


class RequestsView(NamedTuple):
    """The requests of the last minutes.

    Attributes:
        num_requests: all of them.
        num_errors: those that were refused or failed; another generation, or an object that isn't
            there, is an answer.
        p50_seconds: median time of one; None without any.
        p99_seconds: what one in a hundred takes longer than.
    """

    num_requests: int
    num_errors: int
    p50_seconds: float | None
    p99_seconds: float | None


class RecentRequests:
    """An observer that remembers five minutes, and of those the newest 4096 requests.

    The time of uploads and downloads says more of their size than of the store, so the percentiles
    leave them out.
    """

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._requests: deque[tuple[float, Operation, RequestOutcome, float | None]] = deque(
            maxlen=_MAX_REQUESTS
        )

    def __call__(
        self, operation: Operation, outcome: RequestOutcome, seconds: float | None
    ) -> None:
        """Remembers one."""
        with self._lock:
            self._requests.append((self._monotonic(), operation, outcome, seconds))

    def view(self) -> RequestsView:
        """What is remembered now."""
        oldest = self._monotonic() - _WINDOW_SECONDS
        with self._lock:
            while self._requests and self._requests[0][0] < oldest:
                self._requests.popleft()
            kept = list(self._requests)
        seconds = sorted(
            took for _, operation, _, took in kept if operation not in _BULK and took is not None
        )
        return RequestsView(
            num_requests=len(kept),
            num_errors=sum(outcome in ("refused", "error") for _, _, outcome, _ in kept),
            p50_seconds=_percentile(seconds, 0.50),
            p99_seconds=_percentile(seconds, 0.99),
        )


def _percentile(ordered: list[float], part: float) -> float | None:
    """By the nearest rank, so that it is a time that some request really took."""
    if not ordered:
        return None
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]
