import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from tandem.losses.classification import SigmoidFocalLoss, SigmoidLoss

LOSSES = [
    SigmoidLoss(),
    SigmoidFocalLoss(),
    SigmoidFocalLoss(gamma=1.5, alpha=0.75),
    SigmoidFocalLoss(gamma=0.5),
    SigmoidFocalLoss(gamma=0.0, alpha=0.25),
]


def reference(logits, targets, *, gamma=0.0, alpha=None):
    """In double precision, from the papers' formulas."""
    probability = special.expit(logits)
    losses = -targets * special.log_expit(logits) - (1 - targets) * special.log_expit(-logits)
    hit = targets * probability + (1 - targets) * (1 - probability)
    balance = 1.0 if alpha is None else targets * alpha + (1 - targets) * (1 - alpha)
    return losses * (1 - hit) ** gamma * balance


def test_an_undecided_logit_costs_the_logarithm_of_two():
    loss = SigmoidLoss()(tf.zeros([1]), targets=tf.ones([1]), weights=tf.constant([3.0]))
    np.testing.assert_allclose(loss, [3 * np.log(2)], rtol=1e-6)


def test_focal_loss_fades_with_the_square_of_the_miss():
    # Probability 0.9 for a positive: 0.1 ** 2 of the cross entropy, times alpha.
    logit = tf.constant([np.log(9.0)], tf.float32)
    loss = SigmoidFocalLoss(gamma=2.0, alpha=0.25)(
        logit, targets=tf.ones([1]), weights=tf.ones([1])
    )
    np.testing.assert_allclose(loss, [0.25 * 0.01 * -np.log(0.9)], rtol=1e-5)


def test_focal_loss_without_gamma_and_alpha_is_cross_entropy():
    logits, targets = tf.random.stateless_normal([5, 3], (0, 1)), tf.eye(5, 3)
    weights = tf.ones([5, 1])
    plain = SigmoidLoss()(logits, targets=targets, weights=weights)
    focal = SigmoidFocalLoss(gamma=0.0)(logits, targets=targets, weights=weights)
    np.testing.assert_array_equal(focal, plain)


@settings(deadline=None, max_examples=60)
@given(st.floats(-15, 15), st.sampled_from([0.0, 0.3, 1.0]), st.sampled_from([0.0, 0.5, 1.5, 2.0]))
def test_losses_equal_a_reference_in_double_precision(logit, target, gamma):
    loss = SigmoidFocalLoss(gamma=gamma, alpha=0.75)(
        tf.constant([logit], tf.float32), targets=tf.constant([target]), weights=tf.ones([1])
    )
    expected = reference(np.float64(np.float32(logit)), target, gamma=gamma, alpha=0.75)
    np.testing.assert_allclose(loss, [expected], rtol=2e-5, atol=1e-9)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_weights_broadcast_over_columns(loss):
    logits, targets = tf.random.stateless_normal([2, 4, 3], (0, 1)), tf.zeros([2, 4, 3])
    weights = tf.random.stateless_uniform([2, 4, 1], (2, 3))
    broadcast = loss(logits, targets=targets, weights=weights)
    repeated = loss(logits, targets=targets, weights=tf.tile(weights, [1, 1, 3]))
    np.testing.assert_array_equal(broadcast, repeated)
    assert broadcast.shape == (2, 4, 3)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_gradients_are_those_of_finite_differences(loss):
    with tf.device("/CPU:0"):
        logits = tf.constant([-3.0, -0.5, 0.0, 0.7, 4.0])
        targets = tf.constant([1.0, 0.0, 1.0, 0.3, 0.0])
        weights = tf.constant([1.0, 2.0, 0.5, 1.0, 1.0])
        computed, numeric = tf.test.compute_gradient(
            lambda x: loss(x, targets=targets, weights=weights), [logits], delta=1 / 256
        )
    np.testing.assert_allclose(computed[0], numeric[0], atol=2e-3)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("garbage", [np.nan, np.inf, -np.inf, 1e30])
def test_a_masked_entry_gives_zero_loss_and_no_gradient(loss, garbage, run):
    logits = tf.constant([[0.5, garbage], [garbage, -0.5]], tf.float32)
    targets = tf.constant([[1.0, garbage], [garbage, 0.0]], tf.float32)
    weights = tf.constant([[1.0, 0.0], [0.0, 2.0]])

    def loss_and_gradient():
        with tf.GradientTape() as tape:
            tape.watch(logits)
            losses = loss(logits, targets=targets, weights=weights)
        return losses, tape.gradient(losses, logits)

    losses, gradient = run(loss_and_gradient)
    assert np.isfinite(losses).all()
    assert np.isfinite(gradient).all()
    for values in (losses, gradient):
        np.testing.assert_array_equal([values[0, 1], values[1, 0]], [0.0, 0.0])
        assert values[0, 0] != 0.0


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("logit", [-100.0, 100.0])
@pytest.mark.parametrize("target", [0.0, 1.0])
def test_extreme_logits_have_finite_losses_and_gradients(loss, logit, target):
    logits = tf.constant([logit])
    with tf.GradientTape() as tape:
        tape.watch(logits)
        losses = loss(logits, targets=tf.constant([target]), weights=tf.ones([1]))
    assert np.isfinite(losses).all()
    assert np.isfinite(tape.gradient(losses, logits)).all()


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_a_prediction_that_is_not_a_number_shows_in_the_loss(loss):
    losses = loss(tf.constant([np.nan]), targets=tf.zeros([1]), weights=tf.ones([1]))
    assert np.isnan(losses).all()


@pytest.mark.parametrize(
    ("name", "loss"),
    [
        ("weighted_sigmoid", SigmoidLoss()),
        ("focal_a25_g2", SigmoidFocalLoss(gamma=2.0, alpha=0.25)),
        ("focal_a75_g15", SigmoidFocalLoss(gamma=1.5, alpha=0.75)),
        ("focal_noalpha", SigmoidFocalLoss(gamma=2.0)),
    ],
)
def test_losses_equal_those_of_the_original(name, loss, components, run):
    case, arrays = components.cases[f"loss/{name}"], components.arrays
    logits, targets = tf.constant(arrays["loss/logits"]), tf.constant(arrays["loss/targets"])
    mask = arrays["loss/losses_mask"][:, np.newaxis, np.newaxis]
    for out, weights in (
        ("out", arrays["loss/weights3"]),
        ("out_masked", arrays["loss/weights3"] * mask),
    ):
        found = run(lambda w: loss(logits, targets=targets, weights=w), tf.constant(weights))
        np.testing.assert_allclose(found, arrays[case[out]], atol=1e-6, rtol=1e-6)
