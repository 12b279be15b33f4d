"""Input pipelines: from record files to batches, the same at every run of the same seed.

Training: read, shuffle, repeat (`tandem.data.streams`), then in parallel decode, augment, resize
and pad, then batch. Evaluation: every image exactly once, in order, all its boxes, the last batch
as small as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import tensorflow as tf

from tandem import fields
from tandem.data.augment.steps import Example, Step, apply_steps
from tandem.data.batches import Batches
from tandem.data.checks import CheckReport, check_records
from tandem.data.decoding import ClassTable, decode_example
from tandem.data.padding import pad_example, pad_to_one_row
from tandem.data.parallelism import parallel_calls, without_autotune
from tandem.data.records import RecordSet
from tandem.data.resizers import FixedShapeResizer
from tandem.data.streams import ReadOptions, evaluation_stream, training_stream

Stream = Callable[[int], tf.data.Dataset]


@dataclass(frozen=True)
class InputPipeline:
    """Batches of example dicts, and what is known about them.

    Attributes:
        dataset: the batches. Iterate over `batches()`, whose errors say which record is wrong.
        records: the files behind it.
        num_examples: images in one pass.
        batch_size: images per batch; the last one of an evaluation may be smaller.
        classes: what class texts and labels mean.
        max_boxes: box rows per image; None in evaluation, which takes all.
        stream: the records from the n-th example of this pipeline on, undecoded and in the same
            order.
    """

    dataset: tf.data.Dataset
    records: RecordSet
    num_examples: int
    batch_size: int
    classes: ClassTable
    max_boxes: int | None
    stream: Stream

    def check(self, *, decode_images: bool = False) -> CheckReport:
        """Examines every record before any is used (`tandem.data.checks`).

        Raises:
            DataError: a file is damaged.
        """
        return check_records(
            self.records,
            classes=self.classes,
            max_boxes=self.max_boxes,
            decode_images=decode_images,
        )

    def batches(self) -> Batches:
        """Iterates once over the dataset.

        Raises:
            RecordError: from the iterator, naming the record, its source_id and what is wrong with
                it.
        """
        return Batches(
            self.dataset,
            stream=self.stream,
            batch_size=self.batch_size,
            files=self.records.files,
            classes=self.classes,
        )


def training_dataset(
    records: RecordSet,
    *,
    classes: ClassTable,
    resizer: FixedShapeResizer,
    steps: Sequence[Step],
    options: ReadOptions,
    batch_size: int,
    max_boxes: int,
    seed: int,
    first_example: int = 0,
    drop_remainder: bool = True,
    prefetch_batches: int = 2,
) -> InputPipeline:
    """Makes a training pipeline.

    Args:
        records: the files.
        classes: what class texts and labels mean.
        resizer: makes all images one size.
        steps: augmentations, in order.
        options: how to read.
        batch_size: images per batch.
        max_boxes: box rows per image; further boxes are dropped and counted.
        seed: of the order and of the augmentations.
        first_example: examples drawn before, when a run is resumed.
        drop_remainder: leave out a last batch that isn't full; only a finite number of epochs has
            one.
        prefetch_batches: finished batches that may wait.
    """

    def stream(first: int) -> tf.data.Dataset:
        return training_stream(
            records, options=options, seed=seed, first_example=first_example + first
        )

    def prepare(index: tf.Tensor, record_and_bytes: tuple[tf.Tensor, tf.Tensor]) -> Example:
        record, serialized = record_and_bytes
        example = decode_example(serialized, record=record, classes=classes)
        example = apply_steps(steps, example, seed=tf.stack([seed, index]))
        return pad_example(_resize(example, resizer=resizer), max_boxes=max_boxes)

    dataset = (
        stream(0)
        .enumerate(start=first_example)
        .map(
            prepare,
            num_parallel_calls=parallel_calls(),
            deterministic=True,
        )
        .batch(batch_size, drop_remainder=drop_remainder)
        .prefetch(prefetch_batches)
    )
    return InputPipeline(
        without_autotune(dataset),
        records=records,
        num_examples=records.num_records,
        batch_size=batch_size,
        classes=classes,
        max_boxes=max_boxes,
        stream=stream,
    )


def evaluation_dataset(
    records: RecordSet,
    *,
    classes: ClassTable,
    resizer: FixedShapeResizer,
    batch_size: int = 1,
    prefetch_batches: int = 2,
) -> InputPipeline:
    """Makes an evaluation pipeline; boxes are padded to the most of any image in the batch.

    Args:
        records: the files.
        classes: what class texts and labels mean.
        resizer: makes all images one size.
        batch_size: images per batch; the last may be smaller.
        prefetch_batches: finished batches that may wait.
    """

    def stream(first: int) -> tf.data.Dataset:
        return evaluation_stream(records, first_example=first)

    def prepare(record: tf.Tensor, serialized: tf.Tensor) -> Example:
        example = decode_example(serialized, record=record, classes=classes)
        return pad_to_one_row(_resize(example, resizer=resizer))

    dataset = (
        stream(0)
        .map(prepare, num_parallel_calls=parallel_calls(), deterministic=True)
        .padded_batch(batch_size)
        .prefetch(prefetch_batches)
    )
    return InputPipeline(
        without_autotune(dataset),
        records=records,
        num_examples=records.num_records,
        batch_size=batch_size,
        classes=classes,
        max_boxes=None,
        stream=stream,
    )


def _resize(example: Example, *, resizer: FixedShapeResizer) -> Example:
    image = resizer.resize(example[fields.IMAGE])
    return example | {fields.IMAGE: image, fields.TRUE_SIZE: resizer.true_size()}
