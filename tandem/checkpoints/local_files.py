"""The steps that make local writes atomic and durable: temporary files, links, locks, fsync.

A temporary file is locked (flock) by its writer for as long as it lives. So one whose lock can be
had belongs to nobody, and `sweep_temporary_files` removes what a killed process left, without any
idea of how old is too old.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO, NamedTuple

_TEMPORARY_SUFFIX = ".tmp"


class TemporaryFile(NamedTuple):
    """A temporary file, open for writing."""

    path: Path
    file: BinaryIO


@contextlib.contextmanager
def temporary_file(folder: Path, *, nonce: Callable[[], str]) -> Iterator[TemporaryFile]:
    """A fresh file in a folder, removed at the end (where it wasn't renamed)."""
    temporary = _open_locked(folder, nonce=nonce)
    try:
        yield temporary
    finally:
        temporary.path.unlink(missing_ok=True)
        temporary.file.close()


def _open_locked(folder: Path, *, nonce: Callable[[], str]) -> TemporaryFile:
    while True:
        path = folder / f"{nonce()}{_TEMPORARY_SUFFIX}"
        file = path.open("xb")
        fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file.fileno()).st_nlink:
            return TemporaryFile(path, file)
        file.close()  # swept between its creation and its lock


def sweep_temporary_files(folder: Path) -> None:
    """Removes temporary files whose writers are gone."""
    for path in folder.glob(f"*{_TEMPORARY_SUFFIX}"):
        with contextlib.suppress(FileNotFoundError, PermissionError), path.open("rb+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                continue  # its writer lives
            path.unlink(missing_ok=True)


def flush_to_disk(file: BinaryIO) -> None:
    """Waits until a written file's bytes are on the disk."""
    file.flush()
    os.fsync(file.fileno())


@contextlib.contextmanager
def flushing(file: BinaryIO) -> Iterator[None]:
    """Gets a written file's bytes onto the disk while the block does something else with it."""
    with ThreadPoolExecutor(1, thread_name_prefix="fsync") as thread:
        flushed = thread.submit(os.fsync, file.fileno())
        yield
        flushed.result()


def flush_folder(folder: Path) -> None:
    """Waits until a folder's entries are on the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folders(folder: Path) -> None:
    """Creates a folder and its missing parents, durably."""
    if folder.is_dir():
        return
    make_folders(folder.parent)
    folder.mkdir(exist_ok=True)
    flush_folder(folder.parent)


def link_new(source: Path, target: Path) -> None:
    """Gives a file a second name, which must be free; FileExistsError otherwise.

    Unlike a rename this can't overwrite, and unlike an exclusive open it never shows an empty file.
    """
    links_before = source.stat().st_nlink
    try:
        os.link(source, target)
    except FileExistsError:
        # An NFS server may answer so to the repetition of a request that it has carried out.
        if source.stat().st_nlink == links_before or not source.samefile(target):
            raise
    flush_folder(target.parent)


def can_not_link(error: OSError) -> bool:
    """Whether a link failed because of where the two files lie, not because of the target."""
    return error.errno in (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP)


@contextlib.contextmanager
def locked(path: Path, *, exclusive: bool) -> Iterator[None]:
    """Holds the lock that a file stands for; the system frees it if the process dies.

    A shared lock that can't be had because this process may not write there is done without.
    """
    descriptor = _open_lock(path, is_required=exclusive)
    if descriptor is None:
        yield
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
        yield
    finally:
        # Closing alone would leave the lock with a child that was forked meanwhile.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def _open_lock(path: Path, *, is_required: bool) -> int | None:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        if is_required or error.errno not in (errno.ENOENT, errno.EACCES, errno.EROFS):
            raise
        return None
