"""What each anchor should predict, for a batch of padded ground truth."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from tandem.boxes.coders import FasterRcnnBoxCoder
from tandem.boxes.matchers import UNMATCHED, ArgmaxMatcher


class Groundtruth(NamedTuple):
    """Boxes of a batch of images, padded to the same number."""

    boxes: tf.Tensor
    """[batch, max_boxes, 4] float32, (ymin, xmin, ymax, xmax), in the anchors' unit."""
    classes: tf.Tensor
    """[batch, max_boxes] int32, zero-based."""
    weights: tf.Tensor
    """[batch, max_boxes] float32: weight of each box in the loss."""
    num_boxes: tf.Tensor
    """[batch] int32: rows that are no padding; the others may hold anything, NaN included."""


class Targets(NamedTuple):
    """Targets and weights of every anchor of a batch."""

    box_targets: tf.Tensor
    """[batch, num_anchors, 4] float32 box codes; zeros where unmatched."""
    box_weights: tf.Tensor
    """[batch, num_anchors] float32: weight of the matched box, else 0."""
    class_targets: tf.Tensor
    """[batch, num_anchors, num_classes + 1] float32; column 0 is background."""
    class_weights: tf.Tensor
    """[batch, num_anchors, 1] float32, one weight for all columns: that of the matched box, the
    weight of background where unmatched, 0 where ignored."""
    matches: tf.Tensor
    """[batch, num_anchors] int32: row of the matched box, UNMATCHED or IGNORED."""


def assign_targets(
    groundtruth: Groundtruth,
    *,
    anchors: tf.Tensor,
    num_classes: int,
    similarity: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
    matcher: ArgmaxMatcher,
    box_coder: FasterRcnnBoxCoder,
    background_as_zeros: bool,
    negative_class_weight: float = 1.0,
) -> Targets:
    """Matches anchors with boxes and encodes what they should predict.

    A box of weight 0 still claims the anchors that overlap it well, and so takes them out of the
    loss; but it is never forced on an anchor.

    Args:
        groundtruth: boxes of the batch.
        anchors: [num_anchors, 4] float32.
        num_classes: classes without background.
        similarity: of boxes [batch, N, 4] and anchors [M, 4] to [batch, N, M].
        matcher: which box each anchor gets.
        box_coder: how a box is written relative to its anchor.
        background_as_zeros: the class target of an unmatched anchor is all zeros, not one-hot
            background.
        negative_class_weight: weight of an unmatched anchor in the classification loss.
    """
    valid = tf.sequence_mask(groundtruth.num_boxes, tf.shape(groundtruth.boxes)[1])
    boxes = tf.where(valid[..., tf.newaxis], groundtruth.boxes, 0.0)
    weights = tf.where(valid, groundtruth.weights, 0.0)
    matches = matcher.match(similarity(boxes, anchors), valid=valid, forceable=weights > 0.0)
    claimed = _claimed_boxes(groundtruth._replace(boxes=boxes, weights=weights), matches=matches)
    matched = matches >= 0
    return Targets(
        box_targets=tf.where(
            matched[..., tf.newaxis], box_coder.encode(claimed.boxes, anchors=anchors), 0.0
        ),
        box_weights=claimed.weights,
        class_targets=_class_targets(
            claimed.classes, matched=matched, num_classes=num_classes, as_zeros=background_as_zeros
        ),
        class_weights=tf.where(matches == UNMATCHED, negative_class_weight, claimed.weights)[
            ..., tf.newaxis
        ],
        matches=matches,
    )


class _Claimed(NamedTuple):
    boxes: tf.Tensor
    classes: tf.Tensor
    weights: tf.Tensor


def _claimed_boxes(groundtruth: Groundtruth, *, matches: tf.Tensor) -> _Claimed:
    """What each anchor claims; an anchor without a match has weight 0 and some box."""
    # One row more, so that there is something to gather from when an image has no box at all.
    rows = tf.maximum(matches, 0)
    padded = [tf.pad(x, [[0, 0], [0, 1]]) for x in (groundtruth.classes, groundtruth.weights)]
    classes, weights = (tf.gather(x, rows, batch_dims=1) for x in padded)
    boxes = tf.gather(tf.pad(groundtruth.boxes, [[0, 0], [0, 1], [0, 0]]), rows, batch_dims=1)
    return _Claimed(boxes, classes, tf.where(matches >= 0, weights, 0.0))


def _class_targets(
    classes: tf.Tensor, *, matched: tf.Tensor, num_classes: int, as_zeros: bool
) -> tf.Tensor:
    # An index outside of the depth is an all-zero row: that is how -1 encodes nothing.
    background = -1 if as_zeros else 0
    return tf.one_hot(tf.where(matched, classes + 1, background), num_classes + 1)
