"""Where a trainer keeps files under way: of checkpoints, before the store has them."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tandem.checkpoints import names
from tandem.checkpoints.gcs_locations import is_remote
from tandem.checkpoints.objects import ObjectStore
from tandem.errors import ConfigError, StoreError, StoreUnavailableError

_FLUSH_SECONDS = 0.03
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})


def scratch_folder(store: ObjectStore, stated: str | None) -> Path:
    """The folder for this run's files under way, which may not exist yet.

    Args:
        store: the run's. A local run folder is itself the best place: what is written there becomes
            part of the run without a copy.
        stated: by the settings; else the system's temporary folder for a run that is elsewhere.
    """
    if stated is not None and is_remote(stated):
        raise ConfigError(f"the scratch folder {stated!r} is no local path")
    run = store.local_path(names.RUN)
    if stated is None and run is not None:
        return run.parent
    # Other runs may share that folder, and what is left of one of their attempts is theirs.
    mark = hashlib.blake2b(store.location.encode(), digest_size=6).hexdigest()
    try:
        parent = Path(stated or tempfile.gettempdir()).expanduser()
    except RuntimeError as error:
        raise ConfigError(f"the scratch folder {stated!r}: {error}") from error
    return parent / f"tandem-{mark}"


def check_scratch(folder: Path) -> None:
    """Makes the folder, unless it is there; raises ConfigError when it can't be written to."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise ConfigError(
            f"the folder for files under way, {folder}, can't be written to "
            f"({error.strerror or error}): name another one with --scratch-dir"
        ) from error


def remove_leftovers(scratch: Path, attempt: int) -> None:
    """Removes files under way of earlier attempts, which were killed."""
    for folder in scratch.glob(".saving-*-*"):
        if folder.name.split("-")[1] < f"{attempt:04d}":
            shutil.rmtree(folder, ignore_errors=True)


def remove_if_empty(scratch: Path) -> None:
    """Removes the folder when nobody keeps anything in it."""
    with suppress(OSError):
        scratch.rmdir()


@contextmanager
def files_under_way(scratch: Path | None, attempt: int) -> Iterator[Path]:
    """A new folder, gone at the end; a leading dot hides it."""
    if scratch is not None:  # it goes when another process of this run ends and leaves it empty
        scratch.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=scratch_prefix(attempt), dir=scratch))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def flushed_while_written(folder: Path) -> Iterator[None]:
    """Gets files onto the disk while the block writes them, so that less is left to wait for.

    Whoever takes the files flushes them once more, and hears of what fails.
    """
    is_written = threading.Event()

    def flush() -> None:
        while not is_written.wait(_FLUSH_SECONDS):
            with suppress(OSError):  # files are renamed, and a newer attempt removes the folder
                for path in folder.iterdir():
                    with path.open("rb") as file:
                        os.fdatasync(file.fileno())

    thread = threading.Thread(target=flush, name="flush", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_written.set()
        thread.join()


@contextmanager
def system_errors_translated() -> Iterator[None]:
    """Turns the system's errors with files under way into the store's.

    Raises:
        StoreUnavailableError: the disk is full, now.
        StoreError: the system refuses for another reason.
    """
    try:
        yield
    except OSError as error:
        kind = StoreUnavailableError if error.errno in _NO_ROOM else StoreError
        raise kind(f"files under way: {error}") from error


def scratch_prefix(attempt: int) -> str:
    """How an attempt's folders of files under way are called."""
    return f".saving-{attempt:04d}-"
