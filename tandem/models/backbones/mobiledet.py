"""MobileDet CPU (arXiv:2004.14525): inverted bottlenecks with squeeze-and-excite and hard swish.

The backbone fixes its own initialisers, regulariser and batch norm (decay 0.99, epsilon 0.01), and
uses batch statistics in training whatever ``freeze_batchnorm`` and ``conv_hyperparams`` say, as
the original does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import keras
import tensorflow as tf

from tandem.models.convolutions import Conv, DepthwiseConv
from tandem.models.hyperparams.params import L2, BatchNormParams, ConvParams, hard_swish

_NORMAL_TRUNCATED_AT_2_STDDEV = 0.87962566103423978
"""Standard deviation that is left of a unit normal truncated at two standard deviations."""

_PARAMS = ConvParams(
    initializer=keras.initializers.HeNormal,
    regularizer=L2(4e-5),
    activation=hard_swish,
    batch_norm=BatchNormParams(decay=0.99, epsilon=0.01),
)
_LINEAR = replace(_PARAMS, activation=None)


@dataclass(frozen=True)
class Bottleneck:
    """One row of the architecture; ``filters`` is before the depth multiplier."""

    filters: int
    expansion: int
    kernel_size: int = 3
    stride: int = 1
    residual: bool = True


MOBILEDET_CPU = (
    Bottleneck(16, expansion=4, stride=2, residual=False),
    Bottleneck(32, expansion=8, stride=2, residual=False),
    Bottleneck(32, expansion=4),
    Bottleneck(32, expansion=4),
    Bottleneck(32, expansion=4),
    Bottleneck(72, expansion=8, kernel_size=5, stride=2, residual=False),
    Bottleneck(72, expansion=8),
    Bottleneck(72, expansion=4, kernel_size=5),
    Bottleneck(72, expansion=4),
    Bottleneck(72, expansion=8, residual=False),
    Bottleneck(72, expansion=8),
    Bottleneck(72, expansion=8),
    Bottleneck(72, expansion=8),
    Bottleneck(104, expansion=8, kernel_size=5, stride=2, residual=False),
    Bottleneck(104, expansion=4, kernel_size=5),
    Bottleneck(104, expansion=4, kernel_size=5),
    Bottleneck(104, expansion=4),
    Bottleneck(144, expansion=8, residual=False),
)
"""The inverted bottlenecks after the stem."""

_C4 = 12
"""Index in MOBILEDET_CPU of the last block at stride 16, whose output is the map C4."""


def scale_filters(filters: int, multiplier: float) -> int:
    """``filters * multiplier`` rounded half up to a multiple of 8, and at least 8."""
    return max(8, int(filters * multiplier / 8 + 0.5) * 8)


class MobileDetCpu(keras.layers.Layer):
    """Returns the maps C4 (stride 16) and C5 (stride 32)."""

    def __init__(self, *, depth_multiplier: float, name: str = "MobileDetCPU") -> None:
        super().__init__(name=name)
        scale = partial(scale_filters, multiplier=depth_multiplier)
        with keras.name_scope(name):
            self.stem = Conv(
                3, filters=scale(16), kernel_size=3, params=_PARAMS, stride=2, name="Conv"
            )
            self.first = InvertedBottleneck(
                scale(16), Bottleneck(scale(8), expansion=1, residual=False), name="IBNNoExpansion"
            )
            channels, blocks = scale(8), []
            for i, row in enumerate(MOBILEDET_CPU):
                row = replace(row, filters=scale(row.filters))
                blocks.append(InvertedBottleneck(channels, row, name=f"IBN_{i}" if i else "IBN"))
                channels = row.filters
        self.blocks = tuple(blocks)
        self.out_channels = (scale(MOBILEDET_CPU[_C4].filters), channels)
        self.built = True

    def call(self, x: tf.Tensor, training: bool = False) -> tuple[tf.Tensor, tf.Tensor]:
        """Map images [batch, height, width, 3] in [-1, 1] to (C4, C5)."""
        x = self.first(self.stem(x, training=training), training=training)
        c4 = x
        for i, block in enumerate(self.blocks):
            x = block(x, training=training)
            c4 = x if i == _C4 else c4
        return c4, x


class InvertedBottleneck(keras.layers.Layer):
    """1x1 expansion, depthwise convolution, squeeze-and-excite, linear 1x1 projection.

    An expansion of 1 leaves the first convolution out.
    """

    def __init__(self, in_channels: int, row: Bottleneck, *, name: str) -> None:
        super().__init__(name=name)
        hidden = in_channels * row.expansion
        depthwise = replace(_PARAMS, initializer=_depthwise_initializer(row.kernel_size))
        expands = row.expansion > 1
        self.residual = row.residual
        with keras.name_scope(name):
            self.expand = None
            if expands:
                self.expand = Conv(
                    in_channels, filters=hidden, kernel_size=1, params=_PARAMS, name="Conv"
                )
            self.depthwise = DepthwiseConv(
                hidden,
                kernel_size=row.kernel_size,
                params=depthwise,
                stride=row.stride,
                name="SeparableConv2d",
            )
            self.excite = SqueezeExcite(hidden)
            self.project = Conv(
                hidden,
                filters=row.filters,
                kernel_size=1,
                params=_LINEAR,
                name="Conv_1" if expands else "Conv",
            )
        self.built = True

    def call(self, x: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Map [batch, height, width, in] to [batch, height / stride, width / stride, filters]."""
        shortcut = x
        if self.expand is not None:
            x = self.expand(x, training=training)
        x = self.excite(self.depthwise(x, training=training))
        x = self.project(x, training=training)
        return x + shortcut if self.residual else x


class SqueezeExcite(keras.layers.Layer):
    """Weighs each channel by a gate computed from all channels' means (arXiv:1709.01507)."""

    def __init__(self, channels: int, *, name: str = "SqueezeExcite") -> None:
        super().__init__(name=name)
        hidden = scale_filters(channels, 0.25)
        squeeze = replace(_PARAMS, batch_norm=None)
        excite = replace(squeeze, activation=tf.sigmoid)
        with keras.name_scope(name):
            self.squeeze = Conv(
                channels, filters=hidden, kernel_size=1, params=squeeze, name="Conv"
            )
            self.excite = Conv(
                hidden, filters=channels, kernel_size=1, params=excite, name="Conv_1"
            )
        self.built = True

    def call(self, x: tf.Tensor) -> tf.Tensor:
        """Return ``x`` [batch, height, width, channels] times its gates."""
        means = tf.reduce_mean(x, axis=(1, 2), keepdims=True)
        return x * self.excite(self.squeeze(means))


def _depthwise_initializer(kernel_size: int) -> partial[keras.initializers.Initializer]:
    """He initialisation for a depthwise kernel, whose fan-in is one channel's window."""
    stddev = (2.0 / kernel_size**2) ** 0.5 / _NORMAL_TRUNCATED_AT_2_STDDEV
    return partial(keras.initializers.TruncatedNormal, stddev=stddev)
