"""MobileNet V2: channel rounding and the two maps."""

import numpy as np
import pytest
import tensorflow as tf

from tandem.models.backbones.mobilenet_v2 import MobilenetV2, default_params, make_divisible


@pytest.mark.parametrize(
    ("value", "min_depth", "expected"),
    [
        (32 * 0.25, 16, 16),
        (96 * 0.25, 16, 24),
        (24 * 1.4, 8, 32),  # 33.6
        (12, 8, 16),
        (10.5, 8, 16),  # 8 would lose more than a tenth
        (18, 8, 24),  # 16 would too
    ],
)
def test_channels_are_multiples_of_8_and_lose_at_most_a_tenth(value, min_depth, expected):
    assert make_divisible(value, min_depth=min_depth) == expected


def test_the_first_map_is_the_expansion_before_stride_32():
    backbone = MobilenetV2(depth_multiplier=0.25, min_depth=16, params=default_params(frozen=False))
    stride_16, last = backbone(tf.zeros((1, 64, 96, 3)))
    assert stride_16.shape == (1, 4, 6, 144)
    assert last.shape == (1, 2, 3, 320)
    assert backbone.out_channels == (144, 320)


def test_a_frozen_backbone_keeps_its_statistics_in_training():
    backbone = MobilenetV2(depth_multiplier=0.25, min_depth=16, params=default_params(frozen=True))
    backbone(tf.random.stateless_normal((2, 64, 64, 3), seed=(1, 2)), training=True)
    assert np.all(backbone.stem.batch_norm.moving_mean.numpy() == 0.0)


def test_depthwise_kernels_are_not_regularised():
    backbone = MobilenetV2(depth_multiplier=0.25, min_depth=16, params=default_params(frozen=False))
    regularised = {w.name for w in backbone.weights if w.regularizer}
    assert regularised == {"weights"}
