"""Faults that the shim applies to requests, as a test asks for them.

A fault is a JSON object. It applies to the next `times` requests (default 1; null: all) whose line
its `match` (a regular expression) is found in, with `probability` (default 1). A request's line is
`METHOD PATH?QUERY OBJECT`; of an upload too, whose object is named in its body or by its session.

    {"match": "POST /upload", "status": 503}                  refused, nothing stored
    {"match": "POST /upload", "status": 503, "commit": true}  stored, then reported as failed
    {"match": "GET /download", "status": "reset"}             connection reset
    {"match": "PUT /upload", "status": "reset", "after_bytes": 1000}    reset in mid-upload
    {"match": "GET /download", "status": "reset", "after_bytes": 1000}  reset in mid-download
    {"match": "GET", "delay": 1.5}                            late
    {"match": "", "times": null, "bytes_per_second": 1e8}     throttled, all connections together
    {"match": "GET /download", "flip_bit": true}              a bit of the answer changed on the way
    {"match": "PUT /upload", "flip_sent_bit": true}           a bit of a chunk changed on the way
"""

from __future__ import annotations

import random
import re
import threading
import time
from dataclasses import dataclass, field
from typing import Any


class Throttle:
    """Lets bytes pass at a rate, whoever they are of."""

    def __init__(self, bytes_per_second: float) -> None:
        self._rate = bytes_per_second
        self._lock = threading.Lock()
        self._free_at = 0.0

    def take(self, num_bytes: int) -> None:
        with self._lock:
            self._free_at = max(self._free_at, time.monotonic()) + num_bytes / self._rate
            pause = self._free_at - time.monotonic()
        time.sleep(max(0.0, pause))


@dataclass
class Fault:
    """One entry of the list."""

    match: str
    times: int | None = 1
    probability: float = 1.0
    status: int | str | None = None
    commit: bool = False
    after_bytes: int | None = None
    delay: float = 0.0
    bytes_per_second: float | None = None
    flip_bit: bool = False
    flip_sent_bit: bool = False
    throttle: Throttle | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        if self.bytes_per_second is not None:
            self.throttle = Throttle(self.bytes_per_second)

    @property
    def refuses(self) -> bool:
        """Whether the request is answered without being carried out."""
        return self.status is not None and not self.commit and self.after_bytes is None

    def take(self, line: str) -> bool:
        """Whether it applies to a request; counts it then."""
        if self.times == 0 or not re.search(self.match, line):
            return False
        if random.random() >= self.probability:
            return False
        if self.times is not None:
            self.times -= 1
        return True


class Faults:
    """The faults to come, and the lines of all requests and of those that one was applied to."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._faults: list[Fault] = []
        self._log: list[str] = []
        self._all: list[str] = []

    def put(self, entries: list[dict[str, Any]]) -> None:
        """Replaces the list, and empties the log of faulty requests."""
        with self._lock:
            self._faults = [Fault(**entry) for entry in entries]
            self._log = []

    def take(self, line: str) -> Fault:
        """The first fault that applies to a request; one that does nothing if none does."""
        with self._lock:
            self._all.append(line)
            for fault in self._faults:
                if fault.take(line):
                    self._log.append(line)
                    return fault
        return Fault("", times=0)

    @property
    def log(self) -> list[str]:
        """The requests that a fault was applied to, since the faults were put."""
        with self._lock:
            return list(self._log)

    def all_requests(self, since: int = 0) -> list[str]:
        """All requests from the given number on."""
        with self._lock:
            return self._all[since:]
