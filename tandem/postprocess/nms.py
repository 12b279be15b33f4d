"""Greedy non-maximum suppression, class by class, and the best of what remains.

TensorFlow's kernel does one class of one image: take the best box, drop those that overlap it too
much, repeat. Here it is mapped over classes and images. Other ways were measured (bench/nms.py):
the fused `combined_non_max_suppression` takes half the time but doesn't say which anchor a box
comes from and leaves the order of equal scores open; tensor code without the kernel takes ten to a
hundred times as long.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import tensorflow as tf

_PARALLEL_CLASSES = 32


class Selection(NamedTuple):
    """The boxes of each image that survive, best first; rows from `num_selected` on are zeros."""

    anchor_indices: tf.Tensor
    """[batch, max_total] int32."""
    classes: tf.Tensor
    """[batch, max_total] int32, zero-based."""
    scores: tf.Tensor
    """[batch, max_total] float32."""
    num_selected: tf.Tensor
    """[batch] int32."""


@dataclass(frozen=True)
class NonMaxSuppression:
    """Limits of the suppression; boxes are chosen as by the Object Detection API."""

    score_threshold: float
    """Only higher scores are looked at."""
    iou_threshold: float
    """A box that overlaps a better one of its class by more than this is dropped."""
    max_per_class: int
    max_total: int

    def select(self, boxes: tf.Tensor, *, scores: tf.Tensor, visible: tf.Tensor) -> Selection:
        """Chooses boxes of a batch.

        Of equal scores the lower class goes first, then the lower anchor.

        Args:
            boxes: [batch, num_anchors, 4] float32 corners.
            scores: [batch, num_anchors, num_classes] float32; NaN is never chosen.
            visible: [batch, num_anchors] bool. Other boxes suppress and count for `max_per_class`
                but are not returned: the API clips, and drops what is empty then, only afterwards.
        """
        # The kernel's form for GPUs waits for the device once per class; copying the scores is
        # cheaper.
        with tf.device("/CPU:0"):
            by_class = tf.transpose(scores, [0, 2, 1])
            anchors, exists = self._survivors(boxes, by_class)
            kept_scores = tf.gather(by_class, anchors, batch_dims=2)
            exists &= tf.gather(visible, anchors, batch_dims=1)
            return self._best(anchors, tf.where(exists, kept_scores, float("-inf")))

    def _survivors(self, boxes: tf.Tensor, scores: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Anchors of each class, best first, and which of them are no padding.

        Returns:
            [batch, num_classes, max_per_class] int32 and bool.
        """
        anchors, numbers = tf.map_fn(
            lambda image: self._survivors_in_image(*image),
            (boxes, scores),
            fn_output_signature=(
                tf.TensorSpec([scores.shape[1], self.max_per_class], tf.int32),
                tf.TensorSpec([scores.shape[1]], tf.int32),
            ),
        )
        return anchors, tf.sequence_mask(numbers, self.max_per_class)

    def _survivors_in_image(
        self, boxes: tf.Tensor, scores: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        def of_class(class_scores: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            anchors, number = tf.raw_ops.NonMaxSuppressionV4(
                boxes=boxes,
                scores=class_scores,
                max_output_size=self.max_per_class,
                iou_threshold=self.iou_threshold,
                score_threshold=self.score_threshold,
                pad_to_max_output_size=True,
            )
            return tf.ensure_shape(anchors, [self.max_per_class]), number

        return tf.map_fn(
            of_class,
            scores,
            fn_output_signature=(
                tf.TensorSpec([self.max_per_class], tf.int32),
                tf.TensorSpec([], tf.int32),
            ),
            parallel_iterations=_PARALLEL_CLASSES,
        )

    def _best(self, anchors: tf.Tensor, scores: tf.Tensor) -> Selection:
        """Merges the classes: arguments [batch, num_classes, max_per_class], -inf for no box."""
        batch = tf.shape(scores)[0]
        # Padding makes up for fewer places than are asked for.
        flat_scores, flat_anchors = (
            tf.pad(
                tf.reshape(values, [batch, -1]),
                [[0, 0], [0, self.max_total]],
                constant_values=tf.constant(nothing, values.dtype),
            )
            for values, nothing in ((scores, float("-inf")), (anchors, 0))
        )
        best, places = tf.math.top_k(flat_scores, self.max_total)
        found = best > float("-inf")
        return Selection(
            anchor_indices=tf.where(found, tf.gather(flat_anchors, places, batch_dims=1), 0),
            classes=tf.where(found, places // self.max_per_class, 0),
            scores=tf.where(found, best, 0.0),
            num_selected=tf.reduce_sum(tf.cast(found, tf.int32), axis=1),
        )
