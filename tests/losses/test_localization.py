import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from tandem.losses.localization import SmoothL1Loss


def test_small_errors_cost_half_their_square_and_large_ones_their_size():
    codes = tf.constant([[0.5, 3.0, -0.5, 0.0]])
    loss = SmoothL1Loss()(codes, targets=tf.zeros([1, 4]), weights=tf.constant([2.0]))
    np.testing.assert_allclose(loss, [2 * (0.125 + 2.5 + 0.125)])


@settings(deadline=None, max_examples=50)
@given(st.floats(-10, 10, width=32), st.floats(-10, 10, width=32), st.floats(0.0625, 4, width=32))
def test_losses_equal_scipys_huber(code, target, delta):
    loss = SmoothL1Loss(delta=delta)(
        tf.constant([[code]]), targets=tf.constant([[target]]), weights=tf.ones([1])
    )
    expected = special.huber(delta, np.float64(code) - target)
    np.testing.assert_allclose(loss, [expected], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("delta", [1.0, 0.111])
def test_gradients_are_those_of_finite_differences(delta):
    codes = tf.constant([[0.05, -0.4, 3.0, -2.0], [0.0, 0.3, -0.05, 7.0]])
    targets, weights = tf.zeros([2, 4]), tf.constant([1.0, 0.5])
    computed, numeric = tf.test.compute_gradient(
        lambda x: SmoothL1Loss(delta=delta)(x, targets=targets, weights=weights),
        [codes],
        delta=1 / 256,
    )
    np.testing.assert_allclose(computed[0], numeric[0], atol=2e-3)


@pytest.mark.parametrize("garbage", [np.nan, np.inf, -np.inf])
def test_a_masked_anchor_gives_zero_loss_and_no_gradient(garbage, run):
    codes = tf.constant([[0.5] * 4, [garbage] * 4], tf.float32)
    targets = tf.constant([[0.0] * 4, [garbage] * 4], tf.float32)

    def loss_and_gradient():
        with tf.GradientTape() as tape:
            tape.watch(codes)
            losses = SmoothL1Loss()(codes, targets=targets, weights=tf.constant([1.0, 0.0]))
        return losses, tape.gradient(losses, codes)

    losses, gradient = run(loss_and_gradient)
    np.testing.assert_array_equal(losses, [0.5, 0.0])
    np.testing.assert_array_equal(gradient, [[0.5] * 4, [0.0] * 4])


def test_a_target_that_is_not_a_number_shows_unless_it_may_be_ignored():
    arguments = {"targets": tf.constant([[np.nan, 1.0]], tf.float32), "weights": tf.ones([1])}
    assert np.isnan(SmoothL1Loss()(tf.zeros([1, 2]), **arguments)).all()
    ignoring = SmoothL1Loss()(tf.zeros([1, 2]), **arguments, ignore_nan_targets=True)
    np.testing.assert_array_equal(ignoring, [0.5])


@pytest.mark.parametrize(("name", "delta"), [("smooth_l1", 1.0), ("smooth_l1_d0p111", 0.111)])
def test_losses_equal_those_of_the_original(name, delta, components, run):
    case, arrays = components.cases[f"loss/{name}"], components.arrays
    found = run(
        lambda codes: SmoothL1Loss(delta=delta)(
            codes,
            targets=tf.constant(arrays[case["target"]]),
            weights=tf.constant(arrays[case["weights"]]),
        ),
        tf.constant(arrays[case["pred"]]),
    )
    np.testing.assert_allclose(found, arrays[case["out"]], rtol=1e-6, atol=1e-6)


def test_ignored_targets_equal_those_of_the_original(components):
    case, arrays = components.cases["loss/smooth_l1"], components.arrays
    found = SmoothL1Loss()(
        tf.constant(arrays[case["pred"]]),
        targets=tf.constant(arrays["loss/box_target_nan"]),
        weights=tf.constant(arrays[case["weights"]]),
        ignore_nan_targets=True,
    )
    np.testing.assert_allclose(found, arrays[case["out_nan_ignored"]], rtol=1e-6, atol=1e-6)
