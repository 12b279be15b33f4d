"""Update rules against their formulas in NumPy, over several steps."""

import numpy as np
import pytest
import tensorflow as tf

from tandem.training.optimizers import Adam, Momentum, MovingAverages, RmsProp

GRADIENTS = [np.array([1.0, -2.0, 0.5]), np.array([0.5, 0.5, -4.0]), np.array([0.0, 3.0, 1.0])]
RATES = [0.1, 0.2, 0.05]


@pytest.fixture
def weights():
    return tf.Variable([1.0, 2.0, 3.0])


def take_steps(optimizer):
    @tf.function
    def step(gradient, rate, number):
        optimizer.apply([gradient], learning_rate=rate, step=number)

    for number, (gradient, rate) in enumerate(zip(GRADIENTS, RATES, strict=True)):
        step(
            tf.constant(gradient, tf.float32),
            tf.constant(rate),
            tf.constant(number, tf.int64),
        )


def test_momentum_accumulates_gradients_and_scales_by_the_present_rate(weights):
    optimizer = Momentum({"w": weights}, momentum=0.9)
    take_steps(optimizer)
    expected, accumulator = np.array([1.0, 2.0, 3.0]), 0.0
    for gradient, rate in zip(GRADIENTS, RATES, strict=True):
        accumulator = 0.9 * accumulator + gradient
        expected = expected - rate * accumulator
    np.testing.assert_allclose(weights, expected, rtol=1e-6)
    np.testing.assert_allclose(optimizer.slot_tensors["w/Momentum"], accumulator, rtol=1e-6)


def test_rms_prop_starts_its_mean_square_at_one(weights):
    optimizer = RmsProp({"w": weights}, momentum=0.9, decay=0.8, epsilon=0.1)
    take_steps(optimizer)
    expected, square, velocity = np.array([1.0, 2.0, 3.0]), 1.0, 0.0
    for gradient, rate in zip(GRADIENTS, RATES, strict=True):
        square = 0.8 * square + 0.2 * gradient**2
        velocity = 0.9 * velocity + rate * gradient / np.sqrt(square + 0.1)
        expected = expected - velocity
    np.testing.assert_allclose(weights, expected, rtol=1e-6)


def test_adam_corrects_its_bias_by_the_step_count(weights):
    optimizer = Adam({"w": weights}, epsilon=1e-8)
    take_steps(optimizer)
    expected, first, second = np.array([1.0, 2.0, 3.0]), 0.0, 0.0
    for number, (gradient, rate) in enumerate(zip(GRADIENTS, RATES, strict=True), start=1):
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        corrected = np.sqrt(1 - 0.999**number) / (1 - 0.9**number)
        expected = expected - rate * corrected * first / (np.sqrt(second) + 1e-8)
    np.testing.assert_allclose(weights, expected, rtol=1e-5)


def test_the_first_average_is_a_copy_and_later_ones_decay():
    # Case C11: w = 1, gradient 1, rate 0.1, momentum 0.9, decay 0.5, two steps.
    weight = tf.Variable([1.0])
    optimizer = Momentum({"w": weight}, momentum=0.9)
    averages = MovingAverages.of({"w": weight}, decay=0.5)
    for number in range(2):
        step = tf.constant(number, tf.int64)
        optimizer.apply([tf.constant([1.0])], learning_rate=tf.constant(0.1), step=step)
        averages.update(step)
    assert weight.numpy() == pytest.approx([0.71], rel=1e-6)
    assert averages.tensors["w/ExponentialMovingAverage"].numpy() == pytest.approx([0.805])


def test_slots_carry_their_tf1_names(weights):
    names = {
        name
        for optimizer in (
            Momentum({"a/w": weights}, momentum=0.9),
            RmsProp({"a/w": weights}, momentum=0.9, decay=0.9, epsilon=1.0),
            Adam({"a/w": weights}, epsilon=1e-8),
        )
        for name in optimizer.slot_tensors
    }
    assert names == {"a/w/Momentum", "a/w/RMSProp", "a/w/RMSProp_1", "a/w/Adam", "a/w/Adam_1"}
