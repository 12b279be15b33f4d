"""Who owns an attempt where nobody says so: a process on a machine. Pure but for the look at it.

A trainer that was killed on a laptop should start again at once, while a second one started by
mistake should be refused. So a process takes over the ownership of a forerunner that is seen to be
gone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable

_OWNER = re.compile(r"process (\d+) on (.+)")


def owner_of(
    *,
    stated: str | None,
    previous: str | None,
    host: str,
    pid: int,
    is_alive: Callable[[int], bool],
) -> str:
    """The owner to claim an attempt as.

    Args:
        stated: by the settings (a Job's uid); wins.
        previous: owner of the newest attempt.
        host: this machine.
        pid: this process.
        is_alive: whether a process of this machine exists.
    """
    if stated is not None:
        return stated
    match = _OWNER.fullmatch(previous or "")
    if match and match[2] == host and (int(match[1]) == pid or not is_alive(int(match[1]))):
        return match[0]
    return f"process {pid} on {host}"


def process_is_alive(pid: int) -> bool:
    """Whether a process of this number exists on this machine."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
