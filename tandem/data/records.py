"""Sets of TFRecord files: which files `input_path` means, how many records, and each one's id.

A record's id is ``path:index``, counted from 0 within its file. Every message about a record has
it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import tensorflow as tf

from tandem.data.frames import count_records, file_size, read_records
from tandem.errors import DataError

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class RecordFile:
    """One file, counted."""

    path: str
    num_records: int
    num_bytes: int


class StoredRecord(NamedTuple):
    """One record as it lies in the file."""

    record: str
    serialized: bytes


@dataclass(frozen=True)
class RecordSet:
    """The files of one input reader, in reading order.

    Attributes:
        files: at least one; an empty file never gets here.
        one_of_n: 3 keeps the records 0, 3, 6 ... counted over all files (`sample_1_of_n_examples`).
    """

    files: tuple[RecordFile, ...]
    one_of_n: int = 1

    @property
    def num_records(self) -> int:
        """Records that are kept."""
        return -(-sum(file.num_records for file in self.files) // self.one_of_n)

    @property
    def mean_record_bytes(self) -> float:
        """Mean size of a record, to estimate a shuffle buffer's memory."""
        total = sum(file.num_records for file in self.files)
        return sum(file.num_bytes for file in self.files) / total

    @property
    def first_indices(self) -> tuple[int, ...]:
        """For each file, how many records lie in the files before it."""
        firsts, count = [], 0
        for file in self.files:
            firsts.append(count)
            count += file.num_records
        return tuple(firsts)

    def read(self) -> Iterator[StoredRecord]:
        """Yields the records that are kept, each proved by its checksum.

        Raises:
            DataError: a file is damaged.
        """
        for file, first in zip(self.files, self.first_indices, strict=True):
            for frame in read_records(file.path):
                if (first + frame.number) % self.one_of_n == 0:
                    yield StoredRecord(f"{file.path}:{frame.number}", frame.data)


def open_records(patterns: Sequence[str], *, one_of_n: int = 1) -> RecordSet:
    """Finds and counts the files that `patterns` (paths or globs, sorted within each glob) mean.

    Raises:
        DataError: nothing matches, a file is named twice, is empty, or is no whole TFRecord file.
    """
    files = tuple(
        RecordFile(path, num_records=count_records(path), num_bytes=file_size(path))
        for path in resolve_paths(patterns)
    )
    records = RecordSet(files, one_of_n=one_of_n)
    where = files[0].path if len(files) == 1 else f"{len(files)} files"
    _LOGGER.info("%d records in %s", records.num_records, where)
    return records


def resolve_paths(patterns: Sequence[str]) -> tuple[str, ...]:
    """Expands globs, sorted within each, in the order of the patterns.

    Raises:
        DataError: there is no pattern, one matches nothing, or two name the same file.
    """
    if not patterns:
        raise DataError("no input_path is given; expected at least one TFRecord file or glob")
    paths: list[str] = []
    for pattern in patterns:
        found = sorted(tf.io.gfile.glob(pattern)) if set(pattern) & set("*?[") else []
        if not found and tf.io.gfile.exists(pattern):
            found = [pattern]
        if not found:
            raise DataError(f"input_path {pattern!r}: no such file, and as a glob it matches none")
        paths.extend(found)
    _refuse_repeated(paths)
    for path in paths:
        if tf.io.gfile.isdir(path):
            raise DataError(f"input_path {path!r} is a folder; expected TFRecord files or a glob")
    return tuple(paths)


def _refuse_repeated(paths: Sequence[str]) -> None:
    repeated = sorted({path for path in paths if paths.count(path) > 1})
    if repeated:
        raise DataError(
            f"input_path names {repeated[0]!r} more than once (globs may overlap); "
            "its images would count twice"
        )
