"""Splitting records into a part to train on and a part held out for evaluation.

The held-out records are drawn at random over all files, because records of one place or time often
lie side by side, so that the first or last ones would not be like the rest. The draw depends on the
number of records and on the seed alone. Both parts keep the records' order and bytes.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import tensorflow as tf

from tandem.data.records import RecordSet, open_records
from tandem.errors import DataError


class Split(NamedTuple):
    """The two files that were written."""

    train: Path
    evaluation: Path
    num_train: int
    num_evaluation: int


def choose_held_out(num_records: int, *, num_held_out: int, seed: int) -> frozenset[int]:
    """Draws which records are held out.

    Raises:
        DataError: neither part would be non-empty.
    """
    if not 0 < num_held_out < num_records:
        raise DataError(
            f"{num_held_out} of {num_records} records can't be held out; "
            f"expected 1 to {num_records - 1}, so that both parts have some"
        )
    return frozenset(random.Random(seed).sample(range(num_records), num_held_out))


def split_records(
    patterns: Sequence[str],
    *,
    out_dir: Path,
    eval_count: int | None = None,
    eval_fraction: float | None = None,
    seed: int = 0,
) -> Split:
    """Writes `train.record` and `eval.record` into `out_dir`, which is made when missing.

    Args:
        patterns: TFRecord files or globs.
        out_dir: the folder.
        eval_count: records to hold out; or else
        eval_fraction: share of the records to hold out, rounded.
        seed: of the draw.

    Raises:
        DataError: the files can't be read, or one part would be empty.
    """
    records = open_records(patterns)
    count = (
        eval_count if eval_count is not None else round(records.num_records * (eval_fraction or 0))
    )
    held_out = choose_held_out(records.num_records, num_held_out=count, seed=seed)
    out_dir.mkdir(parents=True, exist_ok=True)
    train, evaluation = out_dir / "train.record", out_dir / "eval.record"
    sources = {Path(file.path).resolve() for file in records.files}
    if sources & {train.resolve(), evaluation.resolve()}:
        raise DataError(f"{out_dir} holds the records to split; choose another folder")
    _write(records, train=train, evaluation=evaluation, held_out=held_out)
    return Split(train, evaluation, records.num_records - count, count)


def _write(records: RecordSet, *, train: Path, evaluation: Path, held_out: frozenset[int]) -> None:
    """Writes under other names first: damage that is met half-way leaves no half file behind."""
    partial = [path.with_suffix(".partial") for path in (train, evaluation)]
    try:
        with (
            tf.io.TFRecordWriter(str(partial[0])) as train_writer,
            tf.io.TFRecordWriter(str(partial[1])) as eval_writer,
        ):
            for index, stored in enumerate(records.read()):
                writer = eval_writer if index in held_out else train_writer
                writer.write(stored.serialized)
        partial[0].replace(train)
        partial[1].replace(evaluation)
    finally:
        for path in partial:
            path.unlink(missing_ok=True)
