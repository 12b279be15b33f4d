"""MobileDet CPU: channel rounding and the shape of its maps."""

import numpy as np
import pytest
import tensorflow as tf

from tandem.models.backbones.mobiledet import MobileDetCpu, SqueezeExcite, scale_filters
from tandem.models.hyperparams.params import hard_swish


@pytest.mark.parametrize(
    ("filters", "multiplier", "expected"),
    [
        (16, 1.0, 16),
        (72, 0.25, 16),  # 18 is nearer to 16 than to 24
        (8, 0.25, 8),  # never below 8
        (72, 0.5, 40),  # 36 lies half way and goes up
        (144, 1.5, 216),
    ],
)
def test_filters_are_rounded_half_up_to_multiples_of_8(filters, multiplier, expected):
    assert scale_filters(filters, multiplier) == expected


def test_the_maps_have_strides_16_and_32():
    backbone = MobileDetCpu(depth_multiplier=0.25)
    c4, c5 = backbone(tf.zeros((1, 64, 96, 3)))
    assert c4.shape == (1, 4, 6, 16)
    assert c5.shape == (1, 2, 3, 40)
    assert backbone.out_channels == (16, 40)


def test_the_full_width_has_the_papers_channels():
    assert MobileDetCpu(depth_multiplier=1.0).out_channels == (72, 144)


def test_hard_swish_is_zero_below_minus_3_and_the_identity_above_3():
    y = hard_swish(tf.constant([-4.0, -3.0, 0.0, 1.0, 3.0, 5.0]))
    np.testing.assert_allclose(y.numpy(), [0.0, 0.0, 0.0, 4.0 / 6.0, 3.0, 5.0], rtol=1e-6)


def test_squeeze_and_excite_multiplies_by_a_gate_between_0_and_1():
    x = tf.random.stateless_normal((2, 3, 3, 8), seed=(1, 2))
    gates = (SqueezeExcite(8)(x) / x).numpy()
    assert (gates > 0.0).all()
    assert (gates < 1.0).all()
    np.testing.assert_allclose(gates, np.broadcast_to(gates[:, :1, :1], gates.shape), rtol=1e-5)
