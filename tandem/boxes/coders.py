"""Boxes as offsets from anchors, the numbers that a box predictor learns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import tensorflow as tf

# Keeps the logarithm of an empty box finite; the Object Detection API's value.
_EPSILON = 1e-8

CODE_SIZE = 4
"""Numbers per box code."""


@dataclass(frozen=True)
class FasterRcnnBoxCoder:
    """Centre offsets relative to the anchor's size and logarithms of the size ratios.

    Follows Faster R-CNN (Ren et al., https://arxiv.org/abs/1506.01497, equation 2), each number
    multiplied by a scale that brings it near unit variance.
    """

    y_scale: float = 10.0
    x_scale: float = 10.0
    height_scale: float = 5.0
    width_scale: float = 5.0

    @property
    def _scales(self) -> tuple[float, float, float, float]:
        return (self.y_scale, self.x_scale, self.height_scale, self.width_scale)

    def encode(self, boxes: tf.Tensor, *, anchors: tf.Tensor) -> tf.Tensor:
        """Codes of boxes with respect to anchors.

        Args:
            boxes: [..., 4] float32 corners (ymin, xmin, ymax, xmax), not inverted.
            anchors: [..., 4] float32 corners in the same unit; broadcasts with `boxes`.

        Returns:
            [..., 4] float32, (dy, dx, log height ratio, log width ratio), scaled.
        """
        box, anchor = _centred(boxes), _centred(anchors)
        anchor_height, anchor_width = anchor.height + _EPSILON, anchor.width + _EPSILON
        codes = (
            (box.y - anchor.y) / anchor_height,
            (box.x - anchor.x) / anchor_width,
            tf.math.log((box.height + _EPSILON) / anchor_height),
            tf.math.log((box.width + _EPSILON) / anchor_width),
        )
        return tf.stack([c * s for c, s in zip(codes, self._scales, strict=True)], axis=-1)

    def decode(self, codes: tf.Tensor, *, anchors: tf.Tensor) -> tf.Tensor:
        """Boxes that codes stand for.

        Args:
            codes: [..., 4] float32, (dy, dx, log height ratio, log width ratio), scaled.
            anchors: [..., 4] float32 corners; broadcasts with `codes`.

        Returns:
            [..., 4] float32 corners (ymin, xmin, ymax, xmax) in the anchors' unit.
        """
        anchor = _centred(anchors)
        unstacked = tf.unstack(codes, axis=-1)
        dy, dx, log_height, log_width = (
            c / s for c, s in zip(unstacked, self._scales, strict=True)
        )
        half_height = tf.exp(log_height) * anchor.height / 2.0
        half_width = tf.exp(log_width) * anchor.width / 2.0
        y = dy * anchor.height + anchor.y
        x = dx * anchor.width + anchor.x
        return tf.stack([y - half_height, x - half_width, y + half_height, x + half_width], axis=-1)


class _Centred(NamedTuple):
    y: tf.Tensor
    x: tf.Tensor
    height: tf.Tensor
    width: tf.Tensor


def _centred(boxes: tf.Tensor) -> _Centred:
    ymin, xmin, ymax, xmax = tf.unstack(boxes, axis=-1)
    height, width = ymax - ymin, xmax - xmin
    return _Centred(ymin + height / 2.0, xmin + width / 2.0, height, width)
