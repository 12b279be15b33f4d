"""Convolution blocks: values, names, and the traps of Keras 3's tracking."""

from functools import partial

import keras
import numpy as np
import pytest
import tensorflow as tf

from tandem.models.convolutions import Conv, DepthwiseConv
from tandem.models.hyperparams.params import L2, BatchNormParams, ConvParams

ONES = keras.initializers.Ones
PLAIN = ConvParams(ONES, regularizer=None, activation=None, batch_norm=None)
NORMED = ConvParams(
    partial(keras.initializers.TruncatedNormal, stddev=0.03),
    regularizer=L2(0.5),
    activation=tf.nn.relu6,
    batch_norm=BatchNormParams(decay=0.97, epsilon=0.001),
)


def test_a_convolution_without_batch_norm_has_a_bias_of_the_given_start():
    conv = Conv(2, filters=1, kernel_size=1, params=PLAIN, bias_value=-4.0, name="c")
    y = conv(tf.ones((1, 1, 1, 2)))
    assert [weight.path for weight in conv.weights] == ["c/weights", "c/biases"]
    assert y.numpy().ravel().tolist() == [2.0 - 4.0]


def test_same_padding_at_stride_2_rounds_the_size_up():
    conv = Conv(1, filters=3, kernel_size=3, params=PLAIN, stride=2, name="c")
    y = conv(tf.ones((1, 5, 4, 1)))
    assert y.shape == (1, 3, 2, 3)
    # An even side is padded after, an odd one on both sides.
    assert y.numpy()[0, :, :, 0].tolist() == [[6.0, 4.0], [9.0, 6.0], [6.0, 4.0]]


def test_a_depthwise_convolution_keeps_channels_apart():
    conv = DepthwiseConv(2, kernel_size=3, params=PLAIN, name="d")
    x = tf.constant([1.0, 10.0]) * tf.ones((1, 3, 3, 2))
    y = conv(x)
    assert y.numpy()[0, 1, 1].tolist() == [9.0, 90.0]
    assert [weight.path for weight in conv.weights] == ["d/depthwise_weights", "d/biases"]


def test_weights_are_named_as_in_the_originals_checkpoints():
    with keras.name_scope("FeatureExtractor"):
        conv = Conv(1, filters=2, kernel_size=1, params=NORMED, name="Conv")
    assert {weight.path for weight in conv.weights} == {
        "FeatureExtractor/Conv/weights",
        "FeatureExtractor/Conv/BatchNorm/gamma",
        "FeatureExtractor/Conv/BatchNorm/beta",
        "FeatureExtractor/Conv/BatchNorm/moving_mean",
        "FeatureExtractor/Conv/BatchNorm/moving_variance",
    }


def test_only_kernels_are_regularised():
    conv = Conv(1, filters=2, kernel_size=1, params=NORMED, name="Conv")
    assert [w.path for w in conv.weights if w.regularizer] == ["Conv/weights"]
    assert float(conv.kernel.regularizer(tf.constant([2.0]))) == pytest.approx(0.5 * 4.0 / 2.0)


def test_two_kernels_of_one_shape_start_with_different_values():
    first, second = (Conv(4, filters=4, kernel_size=3, params=NORMED, name=n) for n in "ab")
    assert not np.array_equal(first.kernel.numpy(), second.kernel.numpy())


def test_the_same_seed_gives_the_same_start():
    kernels = []
    for _ in range(2):
        keras.utils.set_random_seed(7)
        kernels.append(Conv(4, filters=4, kernel_size=3, params=NORMED, name="c").kernel.numpy())
    np.testing.assert_array_equal(*kernels)


def test_the_activation_comes_last():
    conv = Conv(1, filters=1, kernel_size=1, params=NORMED, name="c")
    conv.batch_norm.beta.assign([9.0])
    assert conv(tf.zeros((1, 1, 1, 1))).numpy().ravel().tolist() == [6.0]


def test_a_compiled_block_gives_what_an_eager_one_gives():
    conv = Conv(2, filters=3, kernel_size=3, params=NORMED, name="c")
    x = tf.random.stateless_normal((2, 5, 5, 2), seed=(1, 2))
    compiled = tf.function(conv)(x, training=False)
    np.testing.assert_allclose(compiled.numpy(), conv(x, training=False).numpy(), atol=1e-6)
