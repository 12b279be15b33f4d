"""Checksums of bytes and files, computed piece by piece."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple

import google_crc32c

PIECE_BYTES = 1 << 20

HASHED_BYTES = 1 << 20
"""Records, which get replaced, are far below this. What is above is data, created once and never
replaced, and hashing hundreds of megabytes takes longer than writing them."""


class Summary(NamedTuple):
    """Size, crc32c (unsigned 32 bits) and content hash of some bytes.

    The hash has 128 bits; it is empty above a size of `HASHED_BYTES`.
    """

    size: int
    crc32c: int
    content_hash: str


def pieces_of(file: BinaryIO) -> Iterator[bytes]:
    """The rest of a file in pieces, so that a file of any size fits into memory."""
    while piece := file.read(PIECE_BYTES):
        yield piece


class Summing:
    """Adds up a `Summary` while bytes pass by."""

    def __init__(self) -> None:
        self._size = 0
        self._crc32c = 0
        self._hash = hashlib.blake2b(digest_size=16)

    def add(self, piece: bytes) -> None:
        """Takes the next piece into account."""
        self._size += len(piece)
        self._crc32c = google_crc32c.extend(self._crc32c, piece)
        if self._size <= HASHED_BYTES:
            self._hash.update(piece)

    def summary(self) -> Summary:
        """The summary of all pieces so far."""
        is_hashed = self._size <= HASHED_BYTES
        content_hash = self._hash.hexdigest() if is_hashed else ""
        return Summary(self._size, self._crc32c, content_hash)


def summary_of_file(file: BinaryIO, *, on_bytes: Callable[[int], None] | None = None) -> Summary:
    """Summary of the rest of an open file; calls `on_bytes` with the size of each piece of it."""
    summing = Summing()
    for piece in pieces_of(file):
        summing.add(piece)
        if on_bytes is not None:
            on_bytes(len(piece))
    return summing.summary()


def summary_of(data: bytes) -> Summary:
    """Summary of bytes in memory."""
    summing = Summing()
    summing.add(data)
    return summing.summary()


def crc32c_of(data: bytes) -> int:
    """The crc32c of bytes in memory."""
    return int(google_crc32c.value(data))
