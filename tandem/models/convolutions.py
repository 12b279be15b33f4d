"""Convolution blocks: convolution, then batch norm or bias, then activation.

Every block makes its weights when it is constructed, inside the Keras name scopes of its parents,
so that a variable's path is its name in the original's TF1 checkpoints: ``weights``,
``depthwise_weights``, ``biases``, ``BatchNorm/gamma`` under the scope of the block.

Blocks kept in a Python list or dict attribute are not written by ``tf.train.Checkpoint`` under
Keras 3, without any error: keep them in attributes or tuples.
"""

from __future__ import annotations

import keras
import tensorflow as tf

from tandem.models.batch_norm import BatchNorm
from tandem.models.hyperparams.params import ConvParams


class Conv(keras.layers.Layer):
    """A convolution with SAME padding over [batch, height, width, channels] float32."""

    def __init__(
        self,
        in_channels: int,
        *,
        filters: int,
        kernel_size: int,
        params: ConvParams,
        stride: int = 1,
        bias_value: float = 0.0,
        name: str,
    ) -> None:
        super().__init__(name=name)
        self.filters = filters
        self.stride = stride
        self.activation = params.activation
        self.kernel = self.add_weight(
            (kernel_size, kernel_size, in_channels, filters),
            initializer=params.initializer(),
            regularizer=params.regularizer,
            name="weights",
        )
        self.batch_norm = _batch_norm(filters, params, scope=name)
        self.bias = None
        if params.batch_norm is None:
            start = keras.initializers.Constant(bias_value)
            self.bias = self.add_weight((filters,), initializer=start, name="biases")
        self.built = True

    def call(self, x: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Map [batch, height, width, in] to [batch, height / stride, width / stride, filters]."""
        x = tf.nn.conv2d(x, self.kernel.value, self.stride, "SAME")
        if self.bias is not None:
            x = tf.nn.bias_add(x, self.bias.value)
        return _finish(x, self.batch_norm, self.activation, training=training)


class DepthwiseConv(keras.layers.Layer):
    """A convolution of each channel by itself, with SAME padding."""

    def __init__(
        self,
        channels: int,
        *,
        kernel_size: int,
        params: ConvParams,
        stride: int = 1,
        name: str,
    ) -> None:
        super().__init__(name=name)
        self.strides = (1, stride, stride, 1)
        self.activation = params.activation
        self.kernel = self.add_weight(
            (kernel_size, kernel_size, channels, 1),
            initializer=params.initializer(),
            regularizer=params.regularizer,
            name="depthwise_weights",
        )
        self.batch_norm = _batch_norm(channels, params, scope=name)
        self.bias = None
        if params.batch_norm is None:
            self.bias = self.add_weight((channels,), initializer="zeros", name="biases")
        self.built = True

    def call(self, x: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Map [batch, height, width, channels] to the same channels at the stride's size."""
        x = tf.nn.depthwise_conv2d(x, self.kernel.value, self.strides, "SAME")
        if self.bias is not None:
            x = tf.nn.bias_add(x, self.bias.value)
        return _finish(x, self.batch_norm, self.activation, training=training)


def _batch_norm(channels: int, params: ConvParams, *, scope: str) -> BatchNorm | None:
    if params.batch_norm is None:
        return None
    with keras.name_scope(scope):
        return BatchNorm(channels, params.batch_norm)


def _finish(
    x: tf.Tensor,
    batch_norm: BatchNorm | None,
    activation: object,
    *,
    training: bool,
) -> tf.Tensor:
    if batch_norm is not None:
        x = batch_norm(x, training=training)
    return activation(x) if callable(activation) else x
