"""Losses of box codes, one number per anchor."""

from __future__ import annotations

from dataclasses import dataclass

import tensorflow as tf


@dataclass(frozen=True)
class SmoothL1Loss:
    """Huber loss summed over the box code: half the square up to `delta`, then a straight line."""

    delta: float = 1.0

    def __call__(
        self,
        codes: tf.Tensor,
        *,
        targets: tf.Tensor,
        weights: tf.Tensor,
        ignore_nan_targets: bool = False,
    ) -> tf.Tensor:
        """Weighted loss per anchor.

        Args:
            codes: [..., code_size] float32, predicted.
            targets: [..., code_size] float32.
            weights: [...] float32; an anchor of weight 0 gives exactly 0 and no gradient, whatever
                its code and target hold.
            ignore_nan_targets: numbers whose target is NaN give 0, as in the Object Detection API;
                otherwise they make the loss NaN.

        Returns:
            [...] float32.
        """
        counts = (weights != 0.0)[..., tf.newaxis]
        if ignore_nan_targets:
            counts &= ~tf.math.is_nan(targets)
        error = tf.abs(tf.where(counts, codes, 0.0) - tf.where(counts, targets, 0.0))
        quadratic = tf.minimum(error, self.delta)
        huber = 0.5 * quadratic**2 + self.delta * (error - quadratic)
        return tf.reduce_sum(huber, axis=-1) * weights
