"""The small interface that every backend of the run store offers.

An object has a name (`/` between parts), bytes, and a generation that changes whenever the object
does. Each call concerns one object and is atomic. Listings and reads show every call that returned
before them. Errors are those of `tandem.errors`:

- `ObjectNotFoundError`, `ObjectExistsError`, `GenerationMismatchError`: the call changed nothing.
- `StoreUnavailableError`: unclear, the call may have taken effect; `tandem.checkpoints.writing`
  settles that by reading back.
- any other `StoreError`: asking again won't help.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol


class ObjectStat(NamedTuple):
    """What the store itself knows of an object.

    Attributes:
        name: the object's name.
        size: number of bytes.
        crc32c: Castagnoli checksum of the bytes, unsigned 32 bits.
        generation: opaque; another one whenever the object was written anew.
    """

    name: str
    size: int
    crc32c: int
    generation: str


class StoredObject(NamedTuple):
    """An object's bytes and what the store says of exactly these bytes."""

    data: bytes
    stat: ObjectStat


def is_object_name(name: str) -> bool:
    """Whether a name is one that objects can have: its parts are not empty, without leading dot."""
    return all(part and not part.startswith(".") for part in name.split("/"))


def refuse_other_names(name: str) -> None:
    """Raises ValueError when no object can have this name."""
    if not is_object_name(name):
        raise ValueError(f"{name!r} is no object name")


def nothing() -> None:
    """Does nothing: for callers that needn't be told."""


def ignoring(size: int) -> None:
    """Does nothing: for callers that needn't be told of pieces."""


class ObjectStore(Protocol):
    """A run folder: a local one, or a bucket's prefix."""

    @property
    def location(self) -> str:
        """The folder as a user would write it, for messages."""
        ...

    def create(self, name: str, data: bytes) -> ObjectStat:
        """Puts an object that must not exist yet; else ObjectExistsError."""
        ...

    def create_from_file(
        self, name: str, path: Path, *, on_bytes: Callable[[int], None] = ignoring
    ) -> ObjectStat:
        """Like `create`, with a file's bytes, however many.

        The description is of what the store has; CheckpointDamagedError when that isn't what the
        file has. Calls `on_bytes` with the size of each piece that is about to go; what that raises
        ends this.

        The store may keep the very file (a link), so the caller must not write to it afterwards;
        removing it is fine.
        """
        ...

    def replace(self, name: str, data: bytes, *, generation: str | None) -> ObjectStat:
        """Puts an object if its generation is still the given one (None: if it doesn't exist).

        Else GenerationMismatchError. The data must differ from all earlier data of that name.
        """
        ...

    def get(self, name: str) -> StoredObject:
        """Reads a whole object; ObjectNotFoundError when there is none."""
        ...

    def read(self, name: str, *, start: int, size: int) -> bytes:
        """Reads part of an object, fewer bytes at its end; ObjectNotFoundError without one."""
        ...

    def stat(self, name: str) -> ObjectStat:
        """Describes an object; ObjectNotFoundError when there is none."""
        ...

    def generation(self, name: str) -> str:
        """An object's generation alone, without reading much; ObjectNotFoundError without one."""
        ...

    def list_times(self, prefix: str) -> dict[str, float]:
        """Like `list`, with when each was put, by the store's clock, in seconds since 1970.

        For people: no decision compares two machines' clocks.
        """
        ...

    def list(self, prefix: str) -> list[str]:
        """All names that begin with the prefix, sorted."""
        ...

    def delete(self, name: str, *, generation: str) -> None:
        """Removes an object if its generation is still the given one.

        ObjectNotFoundError when there is none, GenerationMismatchError when it is another.
        """
        ...

    def download(
        self, name: str, path: Path, *, on_piece: Callable[[], None] = nothing
    ) -> ObjectStat:
        """Writes an object's bytes to a new file and describes the bytes that arrived.

        Calls `on_piece` from time to time, e.g. to renew a lease; what it raises ends the download.
        """
        ...

    def local_path(self, name: str) -> Path | None:
        """The file that is the object, when this store is a folder here; else None."""
        ...
