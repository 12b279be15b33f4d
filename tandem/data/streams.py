"""The order in which records are read, as (record id, serialized) elements.

Training reads epoch after epoch. Within an epoch every record comes exactly once; the order is
drawn from the run's seed and the epoch's number alone. So the stream can begin at any example,
after a restart at any step, and go on as if it had never stopped. The original repeats before it
shuffles, so that a small set is drawn unevenly.

Shuffling works on the stored bytes, not on decoded images: a buffer of 2048 photos of 100 kB takes
200 MB, where decoded ones of 640 x 480 would take 1.9 GB.
"""

from __future__ import annotations

from dataclasses import dataclass

import tensorflow as tf

from tandem.data.parallelism import parallel_calls
from tandem.data.records import RecordSet

FOREVER = 2**62
"""A number of epochs that no run reaches."""

_MAX_READERS = 64


@dataclass(frozen=True)
class ReadOptions:
    """How training reads.

    Attributes:
        shuffle: draw the order; else files and records come in theirs, every epoch.
        shuffle_buffer_size: records that wait to be drawn.
        num_readers: files that are read in turn, at most.
        read_block_length: records that are taken from one of them before the next.
        num_epochs: passes over the records; None for no end.
    """

    shuffle: bool = True
    shuffle_buffer_size: int = 2048
    num_readers: int = 64
    read_block_length: int = 32
    num_epochs: int | None = None


def training_stream(
    records: RecordSet, *, options: ReadOptions, seed: int, first_example: int = 0
) -> tf.data.Dataset:
    """Records for training, from the given example on.

    Args:
        records: the files.
        options: how to read them.
        seed: of the order.
        first_example: examples that were drawn before; counted over all epochs.

    Returns:
        Elements (record [] string, serialized [] string).
    """
    first_epoch, first_record = divmod(first_example, records.num_records)
    num_epochs = FOREVER if options.num_epochs is None else options.num_epochs
    epochs = tf.data.Dataset.range(first_epoch, max(num_epochs, first_epoch))
    stream = epochs.flat_map(lambda epoch: _epoch(records, options=options, seed=seed, epoch=epoch))
    return stream.skip(first_record)


def evaluation_stream(records: RecordSet, *, first_example: int = 0) -> tf.data.Dataset:
    """Every record once, in the order of the files; elements as in `training_stream`."""
    files = tf.data.Dataset.from_tensor_slices(_paths_and_firsts(records))
    stream = files.flat_map(lambda path, first: _file(path, first, one_of_n=records.one_of_n))
    return stream.skip(first_example)


def _epoch(
    records: RecordSet, *, options: ReadOptions, seed: int, epoch: tf.Tensor
) -> tf.data.Dataset:
    files_seed, buffer_seed = tf.unstack(tf.random.split(tf.stack([seed, epoch]), 2))
    paths, firsts = _paths_and_firsts(records)
    order = tf.range(len(records.files))
    if options.shuffle:
        order = tf.random.experimental.stateless_shuffle(order, files_seed)
    files = tf.data.Dataset.from_tensor_slices((tf.gather(paths, order), tf.gather(firsts, order)))
    readers = max(1, min(options.num_readers, len(records.files), _MAX_READERS))
    stream = files.interleave(
        lambda path, first: _file(path, first, one_of_n=records.one_of_n),
        cycle_length=readers,
        block_length=max(1, options.read_block_length),
        num_parallel_calls=min(readers, parallel_calls()),
        deterministic=True,
    )
    if not options.shuffle:
        return stream
    # This function's graph gets a seed of its own, so that tf.random.set_seed changes nothing here.
    tf.compat.v1.set_random_seed(1)
    buffer_size = min(options.shuffle_buffer_size, records.num_records)
    return stream.shuffle(buffer_size, seed=buffer_seed[0], reshuffle_each_iteration=False)


def _paths_and_firsts(records: RecordSet) -> tuple[tf.Tensor, tf.Tensor]:
    paths = tf.constant([file.path for file in records.files])
    return paths, tf.constant(records.first_indices, tf.int64)


def _file(path: tf.Tensor, first: tf.Tensor, *, one_of_n: int) -> tf.data.Dataset:
    indexed = tf.data.TFRecordDataset(path).enumerate()
    if one_of_n > 1:
        indexed = indexed.filter(lambda index, _: (first + index) % one_of_n == 0)
    return indexed.map(
        lambda index, serialized: (
            tf.strings.join([path, ":", tf.strings.as_string(index)]),
            serialized,
        )
    )
