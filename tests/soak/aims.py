"""The moments that a kill is aimed at, by the object that is being written or removed just then."""

import os
import re
import time
from enum import Enum
from pathlib import Path
from typing import NamedTuple

_LOOK_SECONDS = 0.001


class Signs(NamedTuple):
    """How a moment shows itself.

    Attributes:
        role: whose moment it is.
        here: in a local folder: the name of a file that appears, or with a `-` before it vanishes,
            a moment before or within.
        there: in a bucket: method and object name of the request.
    """

    role: str
    here: str
    there: str


_CHECKPOINT = r"checkpoints/ckpt-\d+-\d+"


class Aim(Enum):
    """A moment in the life of a trainer or an evaluator."""

    UPLOAD = Signs("trainer", r"\.saving-[^/]*/.*", rf"(POST|PUT) .*{_CHECKPOINT}\.(data|index)")
    COMMIT = Signs("trainer", rf"{_CHECKPOINT}\.(index|data.*)", rf"POST .*{_CHECKPOINT}\.commit")
    STATE_FILE = Signs(
        "trainer", rf"{_CHECKPOINT}\.commit\.json", r"POST .*checkpoints/checkpoint$"
    )
    INTENT = Signs("trainer", r"evaluations/.*", rf"POST .*{_CHECKPOINT}\.retire")
    REMOVAL = Signs("trainer", rf"{_CHECKPOINT}\.retire\.json", rf"DELETE .*{_CHECKPOINT}")
    LAST_REMOVAL = Signs("trainer", rf"-{_CHECKPOINT}\..*", rf"DELETE .*{_CHECKPOINT}\.retire")
    LEASE = Signs("evaluator", r"leases/.*", r"POST .*leases/")
    TRY = Signs("evaluator", r"evaluations/.*\.try-.*", r"POST .*evaluations/.*\.try-")
    ENTRY = Signs("evaluator", r"heartbeats/evaluator-.*", r"POST .*evaluations/[^/]*/[^./]*\.json")
    RELEASE = Signs("evaluator", r"evaluations/[^/]*/[^./]*\.json", r"DELETE .*leases/")

    def __str__(self):
        return self.name.lower().replace("_", " ")


def wait_in_folder(folder: Path, aim: Aim, *, seconds: float):
    """Returns when the moment has come, or after so many seconds."""
    appears = re.compile(aim.value.here.removeprefix("-"))
    vanishes = aim.value.here.startswith("-")
    before = _files(folder, appears)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        now = _files(folder, appears)
        if (before - now) if vanishes else (now - before):
            return
        before = now
        time.sleep(_LOOK_SECONDS)


def _files(folder, pattern):
    """Name and inode: a file that is replaced is another one."""
    found = set()
    for place in _folders(folder, pattern):
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    name = os.path.relpath(entry.path, folder)
                    if pattern.fullmatch(name):
                        found.add((name, entry.inode()))
        except FileNotFoundError:
            continue
    return found


def _folders(folder, pattern):
    """The folders, two levels deep, that such names can be in."""
    top = pattern.pattern.split("/")[0]
    if top.startswith(r"\."):
        return list(folder.glob(".saving-*"))
    if top in ("leases", "evaluations"):
        return list((folder / top).glob("*"))
    return [folder / top]
