"""How many images per second each stage of the input pipeline makes, and what each costs.

Usage: .venv/bin/python bench/data.py RECORD [RECORD ...] [--size 320] [--images 600]
The stages add up: each row does all of those above it. Records need a class/label.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tensorflow as tf

from tandem.data.augment.crops import SsdRandomCrop
from tandem.data.augment.flips import RandomHorizontalFlip
from tandem.data.augment.steps import Step
from tandem.data.checks import check_records
from tandem.data.decoding import ClassTable, decode_example
from tandem.data.pipelines import evaluation_dataset, training_dataset
from tandem.data.records import RecordSet, open_records
from tandem.data.resizers import FixedShapeResizer
from tandem.data.streams import ReadOptions, training_stream

MANY_CLASSES = 10_000
BATCH_SIZE = 8


class Cost(NamedTuple):
    images_per_second: float
    cpu_seconds_per_image: float


class Row(NamedTuple):
    stage: str
    cost: Cost


def main() -> None:
    arguments = _arguments()
    records = open_records(arguments.records)
    print(
        f"{records.num_records} records of {records.mean_record_bytes / 1000:.0f} kB, "
        f"{os.cpu_count()} cores, TensorFlow {tf.__version__}, resized to {arguments.size}\n"
    )
    print("| stage | images/s | CPU ms per image |\n|---|---:|---:|")
    for row in _rows(records, size=arguments.size, num_images=arguments.images):
        speed, cpu = row.cost
        print(f"| {row.stage} | {speed:.0f} | {1000 * cpu:.2f} |", flush=True)


def _rows(records: RecordSet, *, size: int, num_images: int) -> Iterator[Row]:
    classes = ClassTable(MANY_CLASSES)
    cost = _cost(lambda: check_records(records, classes=classes), records.num_records)
    yield Row("check (all records, before training)", cost)

    stream = training_stream(records, options=ReadOptions(), seed=0)
    yield Row("read and shuffle", _speed(stream.take(10 * num_images), 10 * num_images))
    decoded = stream.take(num_images).map(
        lambda record, serialized: decode_example(serialized, record=record, classes=classes),
        num_parallel_calls=tf.data.AUTOTUNE,
        deterministic=True,
    )
    yield Row("decode", _speed(decoded, num_images))
    train = _trainer(records, classes=classes, size=size)
    num_batches = num_images // BATCH_SIZE
    stages: tuple[tuple[str, tuple[Step, ...]], ...] = (
        (f"resize, pad, batch of {BATCH_SIZE}", ()),
        ("random_horizontal_flip", (RandomHorizontalFlip(),)),
        ("ssd_random_crop", (RandomHorizontalFlip(), SsdRandomCrop())),
    )
    for stage, steps in stages:
        batches = train(steps).take(num_batches)
        yield Row(stage, _speed(batches, num_batches * BATCH_SIZE))
    evaluation = evaluation_dataset(
        records, classes=classes, resizer=FixedShapeResizer(size, size), batch_size=BATCH_SIZE
    )
    passes = max(1, num_images // records.num_records)
    repeated = evaluation.dataset.repeat(passes)
    yield Row("evaluation as a whole", _speed(repeated, passes * records.num_records))


def _trainer(
    records: RecordSet, *, classes: ClassTable, size: int
) -> Callable[[tuple[Step, ...]], tf.data.Dataset]:
    def train(steps: tuple[Step, ...]) -> tf.data.Dataset:
        return training_dataset(
            records,
            classes=classes,
            resizer=FixedShapeResizer(size, size),
            steps=steps,
            options=ReadOptions(),
            batch_size=BATCH_SIZE,
            max_boxes=100,
            seed=0,
        ).dataset

    return train


def _speed(dataset: tf.data.Dataset, num_images: int) -> Cost:
    for _ in dataset.take(2):  # traces, opens files
        pass
    # Counting inside TensorFlow leaves out Python's time per element.
    return _cost(lambda: dataset.reduce(0, lambda count, _: count + 1), num_images)


def _cost(work: Callable[[], object], num_images: int) -> Cost:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return Cost(num_images / (time.perf_counter() - wall), (time.process_time() - cpu) / num_images)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("records", nargs="+")
    parser.add_argument("--size", type=int, default=320)
    parser.add_argument("--images", type=int, default=600)
    return parser.parse_args()


if __name__ == "__main__":
    main()
