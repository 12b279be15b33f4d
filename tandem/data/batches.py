"""Iterating over batches so that a bad record is named.

TensorFlow's error for a record that can't be decoded says neither which record nor why. The
pipelines are deterministic, so the records of the batch that failed can be read again and examined
one by one, in words. It costs nothing while all is well.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from tandem.data.decoding import ClassTable, why_refused
from tandem.data.frames import read_records
from tandem.data.padding import NUM_DROPPED_BOXES
from tandem.data.records import RecordFile
from tandem.errors import DataError, RecordError

_LOGGER = logging.getLogger(__name__)


class Batches(Iterator[dict[str, Any]]):
    """One pass over a pipeline.

    Attributes:
        num_dropped_boxes: boxes beyond the configured maximum so far, summed over the batches.
    """

    def __init__(
        self,
        dataset: tf.data.Dataset,
        *,
        stream: Callable[[int], tf.data.Dataset],
        batch_size: int,
        files: Sequence[RecordFile],
        classes: ClassTable,
    ) -> None:
        self._iterator = iter(dataset)
        self._stream = stream
        self._batch_size = batch_size
        self._files = files
        self._classes = classes
        self._num_batches = 0
        self.num_dropped_boxes = 0

    def __next__(self) -> dict[str, Any]:
        """The next batch; RecordError when one of its records can't be decoded."""
        try:
            batch: dict[str, Any] = next(self._iterator)
        except (tf.errors.DataLossError, tf.errors.InvalidArgumentError) as error:
            raise RecordError(self._explain(error)) from error
        except tf.errors.NotFoundError as error:
            raise RecordError(f"a record file is gone: {error.message}") from error
        self._num_batches += 1
        self._count_dropped(batch)
        return batch

    def _count_dropped(self, batch: dict[str, Any]) -> None:
        num_dropped = batch.get(NUM_DROPPED_BOXES)
        count = 0 if num_dropped is None else int(num_dropped.numpy().sum())
        if count and not self.num_dropped_boxes:
            _LOGGER.warning(
                "an image has more boxes than max_number_of_boxes; %d of this batch are left out "
                "(this is said once; the count goes on)",
                count,
            )
        self.num_dropped_boxes += count

    def _explain(self, error: tf.errors.OpError) -> str:
        if isinstance(error, tf.errors.DataLossError):
            return _damaged_file(self._files) or f"a record file is damaged: {error.message}"
        suspects = self._stream(self._num_batches * self._batch_size).take(self._batch_size)
        named = []
        try:
            for raw, serialized in suspects.as_numpy_iterator():
                record = raw.decode(errors="replace")
                reason = why_refused(serialized, classes=self._classes)
                if reason:
                    return f"{record} {reason}"
                named.append(record)
        except tf.errors.DataLossError:
            return _damaged_file(self._files) or f"a record file is damaged: {error.message}"
        return f"one of the records {', '.join(named)} can't be used: {error.message}"


def _damaged_file(files: Sequence[RecordFile]) -> str:
    """Reads all the files until one is damaged, and says where."""
    for file in files:
        try:
            for _ in read_records(file.path):
                pass
        except DataError as error:
            return str(error)
    return ""
