"""`tandem store pin` and `unpin`: checkpoints that a person wants kept."""

from __future__ import annotations

import getpass
import os
import re
import socket
from collections.abc import Collection

from services.ctl.store.printing import print_json, print_line
from services.ctl.store.runs import open_run
from services.ctl.streams import shortened
from services.exits import Exit
from tandem.checkpoints.lines import Line, read_line
from tandem.checkpoints.names import CheckpointId
from tandem.checkpoints.pins import pin, pinned_checkpoints, unpin
from tandem.errors import InputError

_MAX_NEAREST = 3
_MAX_DIGITS = 19  # TensorFlow counts steps in 64 bits
_NUMBER = rf"(0|[1-9][0-9]{{0,{_MAX_DIGITS - 1}}})"
_WANTED = re.compile(rf"{_NUMBER}(?:-{_NUMBER})?")


def pin_checkpoint(run: str, wanted: str, *, reason: str, as_json: bool) -> Exit:
    """Pins a checkpoint, named by its step or as STEP-ATTEMPT.

    Raises:
        InputError: it is no run, or there is no such checkpoint.
    """
    step, attempt = _parsed(wanted)
    store = open_run(run).store
    checkpoint = _find(wanted, step, attempt, read_line(store))
    by = f"{_user()}@{socket.gethostname()}"
    is_new = pin(store, checkpoint, reason=reason, by=by)
    if as_json:
        print_json({"checkpoint": str(checkpoint), "pinned": True, "changed": is_new})
    else:
        print_line(f"{checkpoint} {'is pinned' if is_new else 'was pinned already'}")
    return Exit.FINISHED


def unpin_checkpoint(run: str, wanted: str, *, as_json: bool) -> Exit:
    """Takes the pin of a checkpoint away.

    Raises:
        InputError: it is no run, or that checkpoint has no pin.
    """
    _parsed(wanted)
    store = open_run(run).store
    pinned = pinned_checkpoints(store)
    fitting = [c for c in pinned if wanted in (str(c), str(c.step))]
    if len(fitting) > 1:
        raise _ambiguous(wanted, fitting)
    if not fitting or not unpin(store, fitting[0]):
        shown = f"pinned are {_listed(pinned)}" if pinned else "no checkpoint is"
        raise InputError(f"checkpoint {wanted} is not pinned; {shown}")
    if as_json:
        print_json({"checkpoint": str(fitting[0]), "pinned": False, "changed": True})
    else:
        print_line(f"{fitting[0]} is no longer pinned")
    return Exit.FINISHED


def _find(wanted: str, step: int, attempt: int | None, line: Line) -> CheckpointId:
    """The checkpoint that a person means; by step only those on the line count."""
    there = [*line.checkpoints, *line.void]
    if attempt is None:
        fitting = [c for c in line.checkpoints if c.step == step]
    else:
        fitting = [c for c in there if c == (step, attempt)]
    if not fitting:
        raise InputError(f"there is no checkpoint {wanted}; {_nearest(step, there)}")
    return fitting[0]


def _parsed(wanted: str) -> tuple[int, int | None]:
    match = _WANTED.fullmatch(wanted)
    if match is None:
        raise InputError(
            f"{shortened(wanted)!r} is neither a step nor STEP-ATTEMPT, as 1000-2 (of at most "
            f"{_MAX_DIGITS} digits each)"
        )
    return int(match[1]), None if match[2] is None else int(match[2])


def _nearest(step: int, there: Collection[CheckpointId]) -> str:
    if not there:
        return "the run has none yet"
    nearest = sorted(there, key=lambda c: abs(c.step - step))[:_MAX_NEAREST]
    return f"the nearest {'are' if len(nearest) > 1 else 'is'} {_listed(nearest)}"


def _ambiguous(wanted: str, fitting: Collection[CheckpointId]) -> InputError:
    return InputError(f"{wanted} may be any of {_listed(fitting)}: give STEP-ATTEMPT")


def _listed(checkpoints: Collection[CheckpointId]) -> str:
    return ", ".join(map(str, sorted(checkpoints)))


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        return f"uid {os.getuid()}"
