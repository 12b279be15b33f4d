"""Giving every example of a batch the same number of box rows.

Padding rows are zeros, so their weight is 0; NUM_BOXES says how many rows are real.
"""

from __future__ import annotations

import tensorflow as tf

from tandem import fields
from tandem.data.augment.steps import PER_BOX, Example

NUM_DROPPED_BOXES = "num_dropped_boxes"
"""[] int32: boxes of the image beyond the configured maximum, which training doesn't see."""


def pad_example(example: Example, *, max_boxes: int) -> Example:
    """Pads or cuts the per-box rows to `max_boxes`.

    The first `max_boxes` are kept, as in the original, which says nothing of the rest; here
    NUM_DROPPED_BOXES counts them.

    Args:
        example: with NUM_BOXES and the per-box keys.
        max_boxes: rows of the result.

    Returns:
        The example with static per-box shapes, NUM_BOXES of at most `max_boxes`, and
        NUM_DROPPED_BOXES.
    """
    num_boxes = example[fields.NUM_BOXES]
    num_kept = tf.minimum(num_boxes, max_boxes)
    padded = {key: _pad(example[key], max_boxes) for key in PER_BOX}
    return example | padded | {fields.NUM_BOXES: num_kept, NUM_DROPPED_BOXES: num_boxes - num_kept}


def pad_to_one_row(example: Example) -> Example:
    """Gives an image without boxes one row of padding, so that no batch has an axis of length 0."""
    num_rows = tf.maximum(example[fields.NUM_BOXES], 1)
    return example | {key: _pad(example[key], num_rows) for key in PER_BOX}


def _pad(rows: tf.Tensor, num_rows: tf.Tensor | int) -> tf.Tensor:
    rows = rows[:num_rows]
    missing = num_rows - tf.shape(rows)[0]
    padded = tf.pad(rows, [[0, missing], *[[0, 0]] * (rows.shape.rank - 1)])
    padded.set_shape([num_rows if isinstance(num_rows, int) else None, *rows.shape[1:]])
    return padded
