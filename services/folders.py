"""Folders of one process, which the next one removes where a killed one could not."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

_LOCK = ".lock"


@contextlib.contextmanager
def own_folder(parent: Path, *, prefix: str) -> Iterator[Path]:
    """A new folder, gone at the end; first removes those of this prefix whose processes are gone.

    A living process holds the lock of its folder, which the system lets go of when it dies. So
    nobody has to guess by age or process id.
    """
    parent.mkdir(parents=True, exist_ok=True)
    for folder in parent.glob(f"{prefix}*"):
        _remove_if_abandoned(folder)
    folder, lock = _new_locked(parent, prefix)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _new_locked(parent: Path, prefix: str) -> tuple[Path, int]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        with contextlib.suppress(FileNotFoundError):  # removed before it was locked
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if os.fstat(lock).st_nlink:
                return folder, lock
            os.close(lock)


def _remove_if_abandoned(folder: Path) -> None:
    try:
        lock = os.open(folder / _LOCK, os.O_RDWR)
    except FileNotFoundError:  # being made or removed just now, or its process died in between
        with contextlib.suppress(OSError):
            folder.rmdir()
        return
    except OSError:
        return  # another user's
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return  # its process lives
    else:
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)
