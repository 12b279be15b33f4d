"""Areas, overlaps and frames of reference of axis-aligned boxes.

A box is four numbers (ymin, xmin, ymax, xmax) on the last axis. The unit, normalised or pixels, is
the caller's, as long as all arguments share it.
"""

from __future__ import annotations

import tensorflow as tf


def area(boxes: tf.Tensor) -> tf.Tensor:
    """Height times width, without a sign check: an inverted box has a negative area.

    Args:
        boxes: [..., 4] float32.

    Returns:
        [...] float32, in the square of the boxes' unit.
    """
    ymin, xmin, ymax, xmax = tf.unstack(boxes, axis=-1)
    return (ymax - ymin) * (xmax - xmin)


def intersection(boxes: tf.Tensor, others: tf.Tensor) -> tf.Tensor:
    """Area that each box shares with each of the others.

    Works coordinate by coordinate, so nothing larger than the result is made.

    Args:
        boxes: [..., N, 4] float32.
        others: [..., M, 4] float32; leading axes broadcast with those of `boxes`.

    Returns:
        [..., N, M] float32, not negative.
    """
    ymin, xmin, ymax, xmax = tf.unstack(boxes[..., :, tf.newaxis, :], axis=-1)
    other_ymin, other_xmin, other_ymax, other_xmax = tf.unstack(
        others[..., tf.newaxis, :, :], axis=-1
    )
    height = tf.maximum(tf.minimum(ymax, other_ymax) - tf.maximum(ymin, other_ymin), 0.0)
    width = tf.maximum(tf.minimum(xmax, other_xmax) - tf.maximum(xmin, other_xmin), 0.0)
    return height * width


def intersection_over_union(boxes: tf.Tensor, others: tf.Tensor) -> tf.Tensor:
    """Jaccard index of each box with each of the others; 0 where both are empty.

    Args:
        boxes: [..., N, 4] float32.
        others: [..., M, 4] float32; leading axes broadcast with those of `boxes`.

    Returns:
        [..., N, M] float32 in [0, 1] for boxes that are not inverted.
    """
    shared = intersection(boxes, others)
    union = area(boxes)[..., :, tf.newaxis] + area(others)[..., tf.newaxis, :] - shared
    return tf.math.divide_no_nan(shared, union)


def intersection_over_area(boxes: tf.Tensor, others: tf.Tensor) -> tf.Tensor:
    """Share of each box's own area that each of the others covers; 0 for an empty box.

    Args:
        boxes: [..., N, 4] float32.
        others: [..., M, 4] float32; leading axes broadcast with those of `boxes`.

    Returns:
        [..., N, M] float32.
    """
    return tf.math.divide_no_nan(intersection(boxes, others), area(boxes)[..., :, tf.newaxis])


def clip_to_window(boxes: tf.Tensor, window: tf.Tensor) -> tf.Tensor:
    """Moves every corner that lies outside of the window onto its border.

    A box wholly outside ends up with area 0.

    Args:
        boxes: [..., N, 4] float32.
        window: [..., 4] float32, (ymin, xmin, ymax, xmax).

    Returns:
        [..., N, 4] float32.
    """
    window = window[..., tf.newaxis, :]
    low = tf.concat([window[..., :2], window[..., :2]], axis=-1)
    high = tf.concat([window[..., 2:], window[..., 2:]], axis=-1)
    return tf.maximum(tf.minimum(boxes, high), low)


def change_coordinate_frame(boxes: tf.Tensor, window: tf.Tensor) -> tf.Tensor:
    """Expresses boxes in the frame in which the window is (0, 0, 1, 1).

    Args:
        boxes: [..., N, 4] float32.
        window: [..., 4] float32, (ymin, xmin, ymax, xmax), with a positive height and width.

    Returns:
        [..., N, 4] float32.
    """
    window = window[..., tf.newaxis, :]
    origin, size = window[..., :2], window[..., 2:] - window[..., :2]
    origin = tf.concat([origin, origin], axis=-1)
    # The reciprocal first, as in the Object Detection API: the same rounding.
    return (boxes - origin) * tf.concat([1.0 / size, 1.0 / size], axis=-1)


def scale(boxes: tf.Tensor, size: tf.Tensor) -> tf.Tensor:
    """Multiplies y by a height and x by a width, such as from normalised to pixels.

    Args:
        boxes: [..., N, 4] float32.
        size: [..., 2] float32, (height, width).

    Returns:
        [..., N, 4] float32.
    """
    return boxes * tf.concat([size, size], axis=-1)[..., tf.newaxis, :]
