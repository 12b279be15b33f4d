"""The run store in a local folder (a disk of this machine, or NFS).

- create: write a temporary file, fsync it, `link` it to its name, fsync the folder. A crash leaves
  the whole object or none, never an empty one.
- replace: the same with a rename, under the lock of the object's folder, after comparing
  generations. delete: under that lock too.
- list: each folder is read under its lock (shared), as some file systems can miss an entry that is
  being renamed over.
- The generation is a hash of the content. That is enough because data of a replaceable object
  never repeats: every record has a nonce. A large object is data of a checkpoint, which is created
  once and never replaced: its generation is the file's own (size, time, inode), as reading hundreds
  of megabytes just to delete them would slow training down.

Temporary files and locks are in `.store/`, which no object name reaches.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from tandem.checkpoints import local_files
from tandem.checkpoints.checksums import HASHED_BYTES, Summary, Summing, pieces_of, summary_of
from tandem.checkpoints.checksums import summary_of_file as summary_of_open_file
from tandem.checkpoints.objects import (
    ObjectStat,
    StoredObject,
    ignoring,
    nothing,
    refuse_other_names,
)
from tandem.errors import (
    GenerationMismatchError,
    ObjectExistsError,
    ObjectNotFoundError,
    StoreError,
    StoreUnavailableError,
)

_PRIVATE_FOLDER = ".store"
_PASSING_ERRORS = frozenset(
    {
        errno.EIO,
        errno.ESTALE,
        errno.ETIMEDOUT,
        errno.EAGAIN,
        errno.EBUSY,
        errno.EINTR,
        errno.ENOSPC,  # a full disk: space may come back, by retiring or by whoever filled it
        errno.EDQUOT,
    }
)
_MAX_FOLDER_RACES = 1000


class LocalStore:
    """A run folder on a local disk; creates the folder at the first write."""

    def __init__(self, root: Path, *, nonce: Callable[[], str] = lambda: uuid.uuid4().hex) -> None:
        self._root = root.absolute()
        self._private = self._root / _PRIVATE_FOLDER
        self._nonce = nonce
        self._is_prepared = False

    @property
    def location(self) -> str:
        """The folder, for messages."""
        return str(self._root)

    def create(self, name: str, data: bytes) -> ObjectStat:
        """Puts an object that must not exist yet."""
        with _translated(name), self._written(data) as temporary:
            self._link(temporary.path, name)
            return _stat(name, summary_of(data), temporary.file)

    def create_from_file(
        self, name: str, path: Path, *, on_bytes: Callable[[int], None] = ignoring
    ) -> ObjectStat:
        """Puts a file as an object: by a link to it, or by a copy where that can't be."""
        source = path.resolve()
        with _translated(name):
            self._prepare()
            with source.open("rb") as file:
                with local_files.flushing(file):
                    stat = _stat(name, summary_of_open_file(file, on_bytes=on_bytes), file)
                try:
                    self._link(source, name)
                except OSError as error:
                    if not local_files.can_not_link(error):
                        raise
                    stat = self._copy(source, name)
        return stat

    def replace(self, name: str, data: bytes, *, generation: str | None) -> ObjectStat:
        """Puts an object if its generation is still the given one."""
        with _translated(name), self._written(data) as temporary:
            if generation is None:
                self._link_absent(temporary.path, name)
            else:
                self._rename(temporary.path, name, generation)
            return _stat(name, summary_of(data), temporary.file)

    def get(self, name: str) -> StoredObject:
        """Reads a whole object."""
        with _translated(name), self._path(name).open("rb") as file:
            data = file.read()
            return StoredObject(data, _stat(name, summary_of(data), file))

    def read(self, name: str, *, start: int, size: int) -> bytes:
        """Reads part of an object."""
        with _translated(name), self._path(name).open("rb") as file:
            file.seek(start)
            return file.read(size)

    def stat(self, name: str) -> ObjectStat:
        """Describes an object, by reading it."""
        with _translated(name), self._path(name).open("rb") as file:
            return _stat(name, summary_of_open_file(file), file)

    def generation(self, name: str) -> str:
        """An object's generation; a large one is not read for it."""
        with _translated(name), self._path(name).open("rb") as file:
            return _generation(file)

    def list_times(self, prefix: str) -> dict[str, float]:
        """Like `list`, with when each was put, by the file system's clock, in seconds."""
        times = {}
        for name in self.list(prefix):
            with contextlib.suppress(ObjectNotFoundError), _translated(name):  # deleted meanwhile
                times[name] = self._path(name).stat().st_mtime
        return times

    def list(self, prefix: str) -> list[str]:
        """All names that begin with the prefix, sorted."""
        with _translated(prefix):
            return sorted(self._names_below(prefix.rpartition("/")[0], prefix))

    def delete(self, name: str, *, generation: str) -> None:
        """Removes an object if its generation is still the given one."""
        path = self._path(name)
        with _translated(name):
            if not path.exists():
                raise FileNotFoundError(name)
            self._prepare()
            with self._locked(_folder(name), exclusive=True):
                self._check_generation(name, generation)
                path.unlink()
                local_files.flush_folder(path.parent)
                self._remove_empty_folders(path.parent)

    def download(
        self, name: str, path: Path, *, on_piece: Callable[[], None] = nothing
    ) -> ObjectStat:
        """Copies an object to a new file."""
        with _translated(name), self._path(name).open("rb") as source, path.open("xb") as target:
            return _stat(name, _copy_pieces(source, target, on_piece=on_piece), source)

    def local_path(self, name: str) -> Path | None:
        """The file that is the object."""
        return self._path(name)

    def _path(self, name: str) -> Path:
        refuse_other_names(name)
        return self._root.joinpath(*name.split("/"))

    def _prepare(self) -> None:
        if not self._is_prepared:
            local_files.make_folders(self._private)
            local_files.sweep_temporary_files(self._private)
            self._is_prepared = True

    @contextlib.contextmanager
    def _written(self, data: bytes) -> Iterator[local_files.TemporaryFile]:
        self._prepare()
        with local_files.temporary_file(self._private, nonce=self._nonce) as temporary:
            temporary.file.write(data)
            local_files.flush_to_disk(temporary.file)
            yield temporary

    def _copy(self, source: Path, name: str) -> ObjectStat:
        with local_files.temporary_file(self._private, nonce=self._nonce) as temporary:
            with source.open("rb") as file:
                summary = _copy_pieces(file, temporary.file)
            local_files.flush_to_disk(temporary.file)
            self._link(temporary.path, name)
            return _stat(name, summary, temporary.file)

    def _link(self, source: Path, name: str) -> None:
        path = self._path(name)
        for _ in range(_MAX_FOLDER_RACES):
            try:
                local_files.make_folders(path.parent)
                return local_files.link_new(source, path)
            except FileNotFoundError:
                if not source.exists():
                    raise
                # Another process removed an empty folder in between: make it again.
        raise StoreError(f"{name} can't be put: its folder vanishes again and again")

    def _link_absent(self, temporary: Path, name: str) -> None:
        try:
            self._link(temporary, name)
        except FileExistsError as error:
            raise GenerationMismatchError(f"{name} exists, and was expected not to") from error

    def _rename(self, temporary: Path, name: str, generation: str) -> None:
        path = self._path(name)
        with self._locked(_folder(name), exclusive=True):
            try:
                self._check_generation(name, generation)
            except FileNotFoundError as error:
                raise GenerationMismatchError(f"{name} is gone") from error
            temporary.rename(path)
            local_files.flush_folder(path.parent)

    def _check_generation(self, name: str, generation: str) -> None:
        with self._path(name).open("rb") as file:
            found = _generation(file)
        if found != generation:
            raise GenerationMismatchError(f"{name} has generation {found}, not {generation}")

    def _remove_empty_folders(self, folder: Path) -> None:
        while folder != self._root:
            try:
                folder.rmdir()
            except OSError:
                return  # not empty, or another process was faster
            folder = folder.parent

    def _names_below(self, folder: str, prefix: str) -> Iterator[str]:
        for name, is_folder in self._entries(folder):
            if is_folder:
                if f"{name}/".startswith(prefix) or prefix.startswith(f"{name}/"):
                    yield from self._names_below(name, prefix)
            elif name.startswith(prefix):
                yield name

    def _entries(self, folder: str) -> Sequence[tuple[str, bool]]:
        try:
            with self._locked(folder, exclusive=False), os.scandir(self._root / folder) as entries:
                found = [(entry.name, entry.is_dir()) for entry in entries]
        except (FileNotFoundError, NotADirectoryError):
            return []
        start = f"{folder}/" if folder else ""
        return [(start + name, is_dir) for name, is_dir in found if not name.startswith(".")]

    @contextlib.contextmanager
    def _locked(self, folder: str, *, exclusive: bool) -> Iterator[None]:
        # A few locks for all folders: one of its own would stay for each that comes and goes.
        stripe = hashlib.blake2b(folder.encode()).hexdigest()[0]
        lock = self._private / f"{stripe}.lock"
        with local_files.locked(lock, exclusive=exclusive):
            yield


def _folder(name: str) -> str:
    return name.rpartition("/")[0]


def _stat(name: str, summary: Summary, file: BinaryIO) -> ObjectStat:
    generation = summary.content_hash or _own_generation(file)
    return ObjectStat(name, summary.size, summary.crc32c, generation)


def _generation(file: BinaryIO) -> str:
    if os.fstat(file.fileno()).st_size > HASHED_BYTES:
        return _own_generation(file)
    return summary_of(file.read()).content_hash


def _own_generation(file: BinaryIO) -> str:
    """Of a file that is written once: no link and no move of it changes this."""
    status = os.fstat(file.fileno())
    return f"{status.st_size}-{status.st_mtime_ns}-{status.st_ino}"


def _copy_pieces(
    source: BinaryIO, target: BinaryIO, *, on_piece: Callable[[], None] = nothing
) -> Summary:
    summing = Summing()
    for piece in pieces_of(source):
        target.write(piece)
        summing.add(piece)
        on_piece()
    return summing.summary()


@contextlib.contextmanager
def _translated(name: str) -> Iterator[None]:
    """Turns the system's errors into the store's."""
    try:
        yield
    except FileNotFoundError as error:
        raise ObjectNotFoundError(f"there is no {name}") from error
    except FileExistsError as error:
        raise ObjectExistsError(f"{name} exists already") from error
    except OSError as error:
        kind = StoreUnavailableError if error.errno in _PASSING_ERRORS else StoreError
        raise kind(f"{name}: {error.strerror or error}") from error
