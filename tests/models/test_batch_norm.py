"""Batch norm: values by hand, the fused kernel's variance, and frozen statistics."""

from contextlib import contextmanager

import keras
import numpy as np
import pytest
import tensorflow as tf

from tandem.models.batch_norm import BatchNorm
from tandem.models.hyperparams.params import BatchNormParams

TWO_PIXELS = np.array([1.0, 3.0], np.float32).reshape(2, 1, 1, 1)
"""Mean 2, biased variance 1, Bessel-corrected variance 2."""


def norm(num_channels=1, **changes):
    params = BatchNormParams(**{"decay": 0.9, "epsilon": 0.01, **changes})
    return BatchNorm(num_channels, params)


def test_inference_uses_the_moving_statistics():
    layer = norm()
    layer.moving_mean.assign([1.0])
    layer.moving_variance.assign([3.99])
    layer.gamma.assign([2.0])
    layer.beta.assign([5.0])
    y = layer(TWO_PIXELS, training=False)
    np.testing.assert_allclose(y.numpy().ravel(), [5.0, 2.0 * 2.0 / 2.0 + 5.0], rtol=1e-6)


def test_training_normalises_by_the_biased_variance_of_the_batch():
    y = norm()(TWO_PIXELS, training=True)
    expected = np.array([-1.0, 1.0]) / np.sqrt(1.01)
    np.testing.assert_allclose(y.numpy().ravel(), expected, rtol=1e-5)


def test_training_moves_the_variance_by_the_corrected_one():
    layer = norm()
    layer(TWO_PIXELS, training=True)
    np.testing.assert_allclose(layer.moving_mean.numpy(), [0.9 * 0.0 + 0.1 * 2.0], rtol=1e-6)
    np.testing.assert_allclose(layer.moving_variance.numpy(), [0.9 * 1.0 + 0.1 * 2.0], rtol=1e-6)


def test_a_single_pixel_gives_finite_values():
    layer = norm()
    y = layer(TWO_PIXELS[:1], training=True)
    np.testing.assert_allclose(y.numpy().ravel(), [0.0], atol=1e-6)
    assert np.isfinite(layer.moving_variance.numpy()).all()


def test_frozen_statistics_are_used_in_training_and_stay():
    layer = norm(frozen=True)
    y = layer(TWO_PIXELS, training=True)
    np.testing.assert_allclose(y.numpy().ravel(), [1.0, 3.0] / np.sqrt(1.01), rtol=1e-5)
    assert layer.moving_mean.numpy().tolist() == [0.0]
    assert layer.moving_variance.numpy().tolist() == [1.0]


def test_frozen_statistics_leave_gamma_and_beta_to_train():
    layer = norm(frozen=True)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(TWO_PIXELS, training=True))
    gamma, beta = tape.gradient(loss, [layer.gamma.value, layer.beta.value])
    np.testing.assert_allclose(gamma.numpy(), [4.0 / np.sqrt(1.01)], rtol=1e-5)
    np.testing.assert_allclose(beta.numpy(), [2.0])


def test_without_scale_and_center_only_the_statistics_exist():
    layer = norm(scale=False, center=False)
    assert [weight.name for weight in layer.weights] == ["moving_mean", "moving_variance"]
    y = layer(TWO_PIXELS, training=False)
    np.testing.assert_allclose(y.numpy().ravel(), [1.0, 3.0] / np.sqrt(1.01), rtol=1e-5)


def test_statistics_are_not_trainable():
    layer = norm()
    assert [weight.name for weight in layer.trainable_weights] == ["gamma", "beta"]


@contextmanager
def double_precision():
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy("float64")
    yield
    keras.config.set_dtype_policy(before)


@pytest.mark.parametrize("training", [False, True])
def test_double_precision_gives_the_same_as_the_fused_kernel(training):
    x = np.random.default_rng(0).normal(size=(2, 3, 3, 4))
    single = norm(4)
    with double_precision():
        double = norm(4)
    exact = double(x, training=training)
    assert exact.dtype == tf.float64
    fused = single(x.astype(np.float32), training=training)
    np.testing.assert_allclose(fused.numpy(), exact.numpy(), atol=1e-5)
    moved = single.moving_variance.numpy()
    np.testing.assert_allclose(moved, double.moving_variance.numpy(), rtol=1e-5)


def test_a_compiled_function_moves_the_statistics_as_eager_code_does():
    eager, compiled = norm(), norm()
    eager(TWO_PIXELS, training=True)
    tf.function(compiled)(tf.constant(TWO_PIXELS), training=True)
    assert compiled.moving_mean.numpy() == pytest.approx(eager.moving_mean.numpy())
    assert compiled.moving_variance.numpy() == pytest.approx(eager.moving_variance.numpy())
