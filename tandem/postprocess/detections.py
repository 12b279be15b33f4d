"""Detections of a batch of images from decoded boxes and class logits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import tensorflow as tf

from tandem.boxes import geometry
from tandem.postprocess.nms import NonMaxSuppression, Selection
from tandem.postprocess.scores import ScoreConverter


class Detections(NamedTuple):
    """Detections of each image, best first; rows from `num_detections` on are zeros."""

    boxes: tf.Tensor
    """[batch, max_total, 4] float32, (ymin, xmin, ymax, xmax), clipped."""
    classes: tf.Tensor
    """[batch, max_total] int32, zero-based."""
    scores: tf.Tensor
    """[batch, max_total] float32."""
    num_detections: tf.Tensor
    """[batch] int32."""
    anchor_indices: tf.Tensor
    """[batch, max_total] int32: the anchor that each detection comes from."""
    multiclass_scores: tf.Tensor
    """[batch, max_total, num_classes + 1] float32: all scores of that anchor, background first."""


@dataclass(frozen=True)
class PostProcessor:
    """Score conversion, suppression, clipping to the image and, if asked, a change of frame."""

    convert_scores: ScoreConverter
    suppression: NonMaxSuppression
    change_coordinate_frame: bool
    """Boxes are given relative to the clip window instead of the padded image."""

    def __call__(
        self,
        boxes: tf.Tensor,
        *,
        class_logits: tf.Tensor,
        clip_window: tf.Tensor,
        num_valid: tf.Tensor | None = None,
    ) -> Detections:
        """Detections of a batch.

        Args:
            boxes: [batch, num_anchors, 4] float32 corners, decoded.
            class_logits: [batch, num_anchors, num_classes + 1] float32; column 0 is background,
                which is never detected.
            clip_window: [batch, 4] or [4] float32: what of each image is content and not padding,
                in the boxes' unit. Boxes that don't touch it are dropped, after suppression.
            num_valid: [batch] int32: only the first so many boxes of each image count; None is all.
        """
        multiclass_scores = self.convert_scores(class_logits)
        clipped = geometry.clip_to_window(boxes, clip_window)
        scores = multiclass_scores[..., 1:]
        if num_valid is not None:
            counts = tf.sequence_mask(num_valid, tf.shape(boxes)[1])[..., tf.newaxis]
            scores = tf.where(counts, scores, float("-inf"))
        selection = self.suppression.select(
            boxes, scores=scores, visible=geometry.area(clipped) != 0.0
        )
        if self.change_coordinate_frame:
            clipped = geometry.change_coordinate_frame(clipped, clip_window)
        return _gathered(selection, boxes=clipped, multiclass_scores=multiclass_scores)


def _gathered(
    selection: Selection, *, boxes: tf.Tensor, multiclass_scores: tf.Tensor
) -> Detections:
    exists = tf.sequence_mask(selection.num_selected, tf.shape(selection.scores)[1])

    def take(values: tf.Tensor) -> tf.Tensor:
        taken = tf.gather(values, selection.anchor_indices, batch_dims=1)
        return tf.where(exists[..., tf.newaxis], taken, 0.0)

    return Detections(
        boxes=take(boxes),
        classes=selection.classes,
        scores=selection.scores,
        num_detections=selection.num_selected,
        anchor_indices=selection.anchor_indices,
        multiclass_scores=take(multiclass_scores),
    )
