"""MobileNet V2 (arXiv:1801.04381) up to its last 1x1 convolution, as SSD uses it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import keras
import tensorflow as tf

from tandem.models.convolutions import Conv, DepthwiseConv
from tandem.models.hyperparams.params import L2, BatchNormParams, ConvParams


@dataclass(frozen=True)
class Stage:
    """``repeats`` equal blocks, of which the first has the stride."""

    filters: int
    repeats: int
    stride: int


STAGES = (
    Stage(24, repeats=2, stride=2),
    Stage(32, repeats=3, stride=2),
    Stage(64, repeats=4, stride=2),
    Stage(96, repeats=3, stride=1),
    Stage(160, repeats=3, stride=2),
    Stage(320, repeats=1, stride=1),
)
"""Blocks of expansion 6 after the first block, which has none."""

_STRIDE_16_BLOCK = 13
"""Block whose expansion (before its stride) is the last map at stride 16: ``layer_15``."""


@dataclass(frozen=True)
class MobilenetV2Params:
    """Settings of full convolutions and of depthwise ones, which differ in the regulariser."""

    conv: ConvParams
    depthwise: ConvParams


def default_params(*, frozen: bool) -> MobilenetV2Params:
    """The backbone's own settings, for when the config doesn't override them."""
    conv = ConvParams(
        initializer=partial(keras.initializers.TruncatedNormal, stddev=0.09),
        regularizer=L2(4e-5),
        activation=tf.nn.relu6,
        batch_norm=BatchNormParams(decay=0.9997, epsilon=0.001, frozen=frozen),
    )
    return MobilenetV2Params(conv=conv, depthwise=replace(conv, regularizer=None))


def make_divisible(value: float, *, min_depth: int) -> int:
    """The multiple of 8 nearest to ``value``, at least ``min_depth`` and 90 % of ``value``."""
    rounded = max(min_depth, int(value + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * value else rounded


class MobilenetV2(keras.layers.Layer):
    """Returns the maps ``layer_15/expansion_output`` (stride 16) and ``layer_19`` (stride 32)."""

    def __init__(
        self,
        *,
        depth_multiplier: float,
        min_depth: int,
        params: MobilenetV2Params,
        name: str = "MobilenetV2",
    ) -> None:
        super().__init__(name=name)

        def depth(filters: int) -> int:
            return make_divisible(filters * depth_multiplier, min_depth=min_depth)

        with keras.name_scope(name):
            self.stem = Conv(
                3, filters=depth(32), kernel_size=3, params=params.conv, stride=2, name="Conv"
            )
            self.blocks = _blocks(depth, params)
            self.last = Conv(
                depth(320), filters=depth(1280), kernel_size=1, params=params.conv, name="Conv_1"
            )
        self.out_channels = (self.blocks[_STRIDE_16_BLOCK].hidden, depth(1280))
        self.built = True

    def call(self, x: tf.Tensor, training: bool = False) -> tuple[tf.Tensor, tf.Tensor]:
        """Map images [batch, height, width, 3] in [-1, 1] to the two maps."""
        x = self.stem(x, training=training)
        stride_16 = x
        for i, block in enumerate(self.blocks):
            expanded, x = block(x, training=training)
            stride_16 = expanded if i == _STRIDE_16_BLOCK else stride_16
        return stride_16, self.last(x, training=training)


class ExpandedConv(keras.layers.Layer):
    """1x1 expansion by 6, 3x3 depthwise convolution, linear 1x1 projection."""

    def __init__(
        self,
        in_channels: int,
        *,
        filters: int,
        expansion: int,
        stride: int,
        params: MobilenetV2Params,
        name: str,
    ) -> None:
        super().__init__(name=name)
        self.hidden = in_channels * expansion
        self.residual = stride == 1 and in_channels == filters
        with keras.name_scope(name):
            self.expand = None
            if expansion > 1:
                self.hidden = make_divisible(in_channels * expansion, min_depth=8)
                self.expand = Conv(
                    in_channels,
                    filters=self.hidden,
                    kernel_size=1,
                    params=params.conv,
                    name="expand",
                )
            self.depthwise = DepthwiseConv(
                self.hidden, kernel_size=3, params=params.depthwise, stride=stride, name="depthwise"
            )
            linear = replace(params.conv, activation=None)
            self.project = Conv(
                self.hidden, filters=filters, kernel_size=1, params=linear, name="project"
            )
        self.built = True

    def call(self, x: tf.Tensor, training: bool = False) -> tuple[tf.Tensor, tf.Tensor]:
        """Return the expanded map and the block's output."""
        expanded = x if self.expand is None else self.expand(x, training=training)
        y = self.project(self.depthwise(expanded, training=training), training=training)
        return expanded, x + y if self.residual else y


def _blocks(depth: Callable[[int], int], params: MobilenetV2Params) -> tuple[ExpandedConv, ...]:
    rows = [(16, 1, 1)]
    for stage in STAGES:
        rows += [(stage.filters, 6, stage.stride if i == 0 else 1) for i in range(stage.repeats)]
    channels, blocks = depth(32), []
    for i, (filters, expansion, stride) in enumerate(rows):
        blocks.append(
            ExpandedConv(
                channels,
                filters=depth(filters),
                expansion=expansion,
                stride=stride,
                params=params,
                name=f"expanded_conv_{i}" if i else "expanded_conv",
            )
        )
        channels = depth(filters)
    return tuple(blocks)
