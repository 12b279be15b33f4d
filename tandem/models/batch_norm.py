"""Batch norm on TensorFlow's fused kernel, as the original's training used it.

Keras's own layer moves its variance by the biased batch variance; the fused kernel hands out the
Bessel-corrected one (n / (n - 1)), which differs visibly on small feature maps: by a factor of
two on a 1x1 map with two images.
"""

from __future__ import annotations

from typing import NamedTuple

import keras
import tensorflow as tf

from tandem.models.hyperparams.params import BatchNormParams


class BatchNorm(keras.layers.Layer):
    """Normalises each channel of a [batch, height, width, channels] float32 tensor."""

    def __init__(
        self, num_channels: int, params: BatchNormParams, *, name: str = "BatchNorm"
    ) -> None:
        super().__init__(name=name)
        self.params = params
        self.gamma = self._vector("gamma", num_channels, "ones") if params.scale else None
        self.beta = self._vector("beta", num_channels, "zeros") if params.center else None
        self.moving_mean = self._vector("moving_mean", num_channels, "zeros", trainable=False)
        self.moving_variance = self._vector(
            "moving_variance", num_channels, "ones", trainable=False
        )
        self.built = True

    def _vector(
        self, name: str, size: int, initializer: str, *, trainable: bool = True
    ) -> keras.Variable:
        return self.add_weight((size,), initializer=initializer, trainable=trainable, name=name)

    def call(self, x: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Normalise, and in training move the statistics unless frozen.

        Args:
            x: [batch, height, width, channels] float32.
            training: use the batch's statistics.

        Returns:
            Of the shape of ``x``.
        """
        use_batch = training and not self.params.frozen
        normalized = _normalize(
            x,
            scale=tf.ones_like(self.moving_mean) if self.gamma is None else self.gamma.value,
            offset=tf.zeros_like(self.moving_mean) if self.beta is None else self.beta.value,
            mean=self.moving_mean.value,
            variance=self.moving_variance.value,
            epsilon=self.params.epsilon,
            use_batch=use_batch,
        )
        if use_batch:
            self._move(normalized.mean, normalized.variance)
        return normalized.y

    def _move(self, batch_mean: tf.Tensor, batch_variance: tf.Tensor) -> None:
        rate = 1.0 - self.params.decay
        mean, variance = self.moving_mean.value, self.moving_variance.value
        mean.assign_sub((mean - batch_mean) * rate)
        variance.assign_sub((variance - batch_variance) * rate)


class _Normalized(NamedTuple):
    y: tf.Tensor
    mean: tf.Tensor
    variance: tf.Tensor


def _normalize(
    x: tf.Tensor,
    *,
    scale: tf.Tensor,
    offset: tf.Tensor,
    mean: tf.Tensor,
    variance: tf.Tensor,
    epsilon: float,
    use_batch: bool,
) -> _Normalized:
    """Normalised x, and the batch's mean and Bessel-corrected variance if they were used."""
    if x.dtype == tf.float64:
        return _normalize_double(x, scale, offset, mean, variance, epsilon, use_batch=use_batch)
    result = tf.raw_ops.FusedBatchNormV3(
        x=x,
        scale=scale,
        offset=offset,
        mean=mean,
        variance=variance,
        epsilon=epsilon,
        is_training=use_batch,
    )
    return _Normalized(result.y, result.batch_mean, result.batch_variance)


def _normalize_double(
    x: tf.Tensor,
    scale: tf.Tensor,
    offset: tf.Tensor,
    mean: tf.Tensor,
    variance: tf.Tensor,
    epsilon: float,
    *,
    use_batch: bool,
) -> _Normalized:
    """The same in float64, which the fused kernel lacks: reference values for comparisons."""
    correction = tf.constant(1.0, tf.float64)
    if use_batch:
        mean, variance = tf.nn.moments(x, axes=(0, 1, 2))
        count = tf.cast(tf.size(x) // x.shape[-1], tf.float64)
        correction = count / tf.maximum(count - 1.0, 1.0)
    y = (x - mean) * tf.math.rsqrt(variance + epsilon) * scale + offset
    return _Normalized(y, mean, variance * correction)
