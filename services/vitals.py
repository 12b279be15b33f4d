"""What every heartbeat says of the process itself: software, machine, store, newest trouble."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import NamedTuple

import tandem
from tandem.checkpoints.heartbeats import Fact
from tandem.checkpoints.measuring import RecentRequests
from tandem.checkpoints.surroundings import SYSTEM, Surroundings

_MAX_MESSAGE_CHARACTERS = 300


class Software(NamedTuple):
    """What runs.

    Attributes:
        version: of Tandem.
        image: of the container, where one is told; else what matters of what is installed.
    """

    version: str
    image: str


def software(*, image: str | None, tensorflow: str) -> Software:
    """This process's software.

    Args:
        image: the container's, if the process was told.
        tensorflow: its version.
    """
    version = tandem.__version__
    return Software(version, image or f"tandem {version}, tensorflow {tensorflow}")


class Vitals:
    """Facts for each heartbeat of a process; any thread may note and ask.

    Args:
        software: that runs.
        requests: that the process made of its stores.
        host: pod or machine; None: this machine.
        principal: the account that the store knows the process by, once that is known.
        surroundings: wall clock.
    """

    def __init__(
        self,
        software: Software,
        requests: RecentRequests,
        *,
        host: str | None = None,
        principal: Callable[[], str | None] = lambda: None,
        surroundings: Surroundings = SYSTEM,
    ) -> None:
        self._software = software
        self._requests = requests
        self._host = host or socket.gethostname()
        self._principal = principal
        self._surroundings = surroundings
        self._trouble: dict[str, Fact] = {}

    @property
    def host(self) -> str:
        """The pod or the machine."""
        return self._host

    def note(self, error: BaseException) -> None:
        """Remembers a failure that the process has met, until the next one."""
        text = " ".join(str(error).split()) or type(error).__name__
        self._trouble = {
            "last_error": text[:_MAX_MESSAGE_CHARACTERS],
            "last_error_at": self._surroundings.timestamp(),
            "last_error_kind": type(error).__name__,
        }

    def facts(self) -> dict[str, Fact]:
        """As they are now; None is what isn't known."""
        requests = self._requests.view()
        return {
            "image": self._software.image,
            "version": self._software.version,
            "host": self._host,
            "principal": self._principal(),
            "store_requests": requests.num_requests,
            "store_errors": requests.num_errors,
            "store_p50_seconds": _rounded(requests.p50_seconds),
            "store_p99_seconds": _rounded(requests.p99_seconds),
            **self._trouble,
        }


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 4)
