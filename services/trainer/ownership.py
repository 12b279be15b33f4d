"""Who owns an attempt where nobody says so: a process on a machine. Pure but for the look at it.

A trainer that was killed on a laptop should start again at once, while a second one started by
mistake should be refused. So a process takes over the ownership of a forerunner that is seen to be
gone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from tandem.checkpoints.attempts import Attempt

_OWNER = re.compile(r"process \d+ on .+")


def owner_of(
    *,
    stated: str | None,
    previous: Attempt | None,
    host: str,
    pid: int,
    is_alive: Callable[[int], bool],
) -> str:
    """The owner to claim an attempt as.

    Args:
        stated: by the settings (a Job's uid); wins.
        previous: the newest attempt. Its holder is the process that may live; its owner may be
            one that was succeeded before.
        host: this machine.
        pid: this process.
        is_alive: whether a process of this machine exists.
    """
    if stated is not None:
        return stated
    if previous is not None and _OWNER.fullmatch(previous.owner):
        holder_host, _, holder_pid = previous.holder.rpartition("/")
        if holder_host == host and (int(holder_pid) == pid or not is_alive(int(holder_pid))):
            return previous.owner
    return f"process {pid} on {host}"


def holder_of(*, host: str, pid: int) -> str:
    """How this process is named in the attempts that it claims."""
    return f"{host}/{pid}"


def process_is_alive(pid: int) -> bool:
    """Whether a process of this number exists on this machine."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
