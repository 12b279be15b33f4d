"""Opens a run folder that must exist, or says what is there instead."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tandem.checkpoints import names, writing
from tandem.checkpoints.objects import ObjectStore
from tandem.checkpoints.opening import open_store
from tandem.checkpoints.records import decode
from tandem.checkpoints.runs import Run, foreign_checkpoint_files
from tandem.errors import (
    CheckpointDamagedError,
    InputError,
    StoreError,
    StoreUnavailableError,
)

_MAX_HINTS = 3


class OpenRun(NamedTuple):
    """A run's store and its identity."""

    store: ObjectStore
    run: Run


def open_run(location: str) -> OpenRun:
    """Opens a run folder.

    Raises:
        InputError: it is no run folder.
        StoreError: what says whose run it is, is damaged.
    """
    store = open_store(location)
    found = writing.find(store, names.RUN)
    if found is None:
        raise _no_run(store, location)
    return OpenRun(store, decode(found.data, Run, name=names.RUN))


def open_for_verifying(location: str) -> ObjectStore:
    """Opens a run folder in which anything may be damaged, `run.json` too.

    Raises:
        InputError: it is no run folder.
    """
    store = open_store(location)
    run_file = store.local_path(names.RUN)
    is_there = names.RUN in store.list(names.RUN) or (run_file is not None and run_file.exists())
    if not is_there and not store.list(names.ATTEMPTS):
        raise _no_run(store, location)
    return store


@contextmanager
def damage_explained(location: str) -> Iterator[None]:
    """Says who tells more of a damaged record.

    Raises:
        InputError: in place of what was raised for damage.
    """
    try:
        yield
    except StoreUnavailableError:
        raise
    except (StoreError, CheckpointDamagedError) as error:
        if isinstance(error.__cause__, PermissionError):
            raise
        raise InputError(
            f"{error}; `tandem store verify {shlex.quote(location)}` reads everything and says "
            "what to do about what is wrong"
        ) from error


def _no_run(store: ObjectStore, location: str) -> InputError:
    return InputError(f"{location} is no run folder: {_what_is_there(store)}")


def _what_is_there(store: ObjectStore) -> str:
    run_file = store.local_path(names.RUN)
    if run_file is not None:
        return _what_is_in(run_file.parent)
    if not store.list(""):
        return "nothing is there"
    if foreign_checkpoint_files(store.list("")):
        return "it holds checkpoints of another program, and no run.json"
    return "it has no run.json"


def _what_is_in(folder: Path) -> str:
    if not folder.exists():
        return "it does not exist"
    if not any(folder.iterdir()):
        return "it is empty"
    runs = [folder.parent] if (folder.parent / names.RUN).is_file() else []
    runs += [file.parent for file in sorted(folder.glob(f"*/{names.RUN}"))]
    if runs:
        shown = " or ".join(str(run) for run in runs[:_MAX_HINTS])
        return f"it has no run.json; did you mean {shown}?"
    if foreign_checkpoint_files([file.name for file in folder.iterdir()]):
        return "it holds checkpoints of another program, and no run.json"
    return "it has no run.json"
