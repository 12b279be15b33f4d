"""The assembled detector: padding, gradients, detections, and compiled against eager."""

import numpy as np
import pytest
import tensorflow as tf

from tandem import fields

NUM_ANCHORS = 6 * 4 * 3 + (3 * 2 + 2 * 1 + 1 + 1 + 1) * 4


def images(batch=2):
    return tf.random.stateless_uniform((batch, 96, 64, 3), (1, 2), 0.0, 255.0)


def truth(**changes):
    boxes = [[[0.1, 0.1, 0.6, 0.5], [0.5, 0.4, 0.9, 0.9]], [[0.2, 0.3, 0.4, 0.8], [0.0] * 4]]
    values = {
        fields.BOXES: tf.constant(boxes),
        fields.CLASSES: tf.constant([[0, 2], [1, 0]]),
        fields.WEIGHTS: tf.constant([[1.0, 1.0], [1.0, 0.0]]),
        fields.NUM_BOXES: tf.constant([2, 1]),
    }
    return {**values, **changes}


def test_preprocessing_maps_0_to_minus_1_and_255_to_1(model):
    x = tf.constant([[[[0, 255, 51]]]], tf.uint8)
    np.testing.assert_allclose(model.preprocess(x).numpy().ravel(), [-1.0, 1.0, -0.6], atol=1e-6)
    assert model.preprocess(x).dtype == tf.float32


def test_there_is_a_prediction_for_every_anchor(model):
    predictions = model(model.preprocess(images()))
    assert model.anchors.shape == (NUM_ANCHORS, 4)
    assert predictions.box_encodings.shape == (2, NUM_ANCHORS, 4)
    assert predictions.class_logits.shape == (2, NUM_ANCHORS, 4)
    assert len(predictions.feature_maps) == 6


def test_padding_of_ground_truth_does_not_change_the_loss(model):
    predictions = model(model.preprocess(images()))
    expected = model.loss(predictions, truth())
    garbage = tf.constant([[[np.nan] * 4] * 3] * 2, tf.float32)
    padded = model.loss(
        predictions,
        truth(
            **{
                fields.BOXES: tf.concat([truth()[fields.BOXES], garbage], axis=1),
                fields.CLASSES: tf.constant([[0, 2, 9, 9, 9], [1, 9, 9, 9, 9]]),
                fields.WEIGHTS: tf.constant([[1.0, 1.0, 5.0, 5.0, 5.0], [1.0, 5.0, 5.0, 5.0, 5.0]]),
            }
        ),
    )
    assert float(padded.localization) == pytest.approx(float(expected.localization))
    assert float(padded.classification) == pytest.approx(float(expected.classification))


def test_images_without_boxes_train_to_a_finite_loss(model):
    variables = [v.value for v in model.trainable_variables]
    with tf.GradientTape() as tape:
        predictions = model(model.preprocess(images()), training=True)
        losses = model.loss(predictions, truth(**{fields.NUM_BOXES: tf.constant([0, 0])}))
        total = losses.localization + losses.classification + model.regularization_loss()
    gradients = tape.gradient(total, variables)
    assert float(losses.localization) == 0.0
    assert float(losses.classification) > 0.0
    assert all(np.isfinite(gradient.numpy()).all() for gradient in gradients)


def test_every_trainable_variable_gets_a_gradient(model):
    variables = [v.value for v in model.trainable_variables]
    with tf.GradientTape() as tape:
        predictions = model(model.preprocess(images()), training=True)
        losses = model.loss(predictions, truth())
        total = losses.localization + losses.classification
    assert all(gradient is not None for gradient in tape.gradient(total, variables))


def test_regularisation_counts_kernels_and_neither_biases_nor_batch_norm(model):
    expected = sum(
        4e-5 * float(np.sum(np.square(w.numpy().astype(np.float64)))) / 2
        for w in model.weights
        if w.name in ("weights", "depthwise_weights")
    )
    assert float(model.regularization_loss()) == pytest.approx(expected, rel=1e-5)


def test_detections_are_relative_to_the_images_content(model):
    predictions = model(model.preprocess(images()))
    whole = model.detect(predictions, tf.constant([[96, 64], [96, 64]]))
    half = model.detect(predictions, tf.constant([[48, 64], [96, 64]]))
    assert whole.boxes.shape == (2, 10, 4)
    assert half.boxes.numpy().min() >= 0.0
    assert half.boxes.numpy().max() <= 1.0
    np.testing.assert_array_equal(half.boxes[1].numpy(), whole.boxes[1].numpy())
    assert not np.array_equal(half.boxes[0].numpy(), whole.boxes[0].numpy())


def test_a_compiled_step_gives_what_eager_code_gives(model):
    @tf.function
    def compiled(x, groundtruth):
        predictions = model(model.preprocess(x))
        losses = model.loss(predictions, groundtruth)
        return losses, model.detect(predictions, tf.constant([[96, 64], [96, 64]]))

    losses, detections = compiled(images(), truth())
    predictions = model(model.preprocess(images()))
    eager = model.loss(predictions, truth())
    assert float(losses.localization) == pytest.approx(float(eager.localization), rel=1e-4)
    assert float(losses.classification) == pytest.approx(float(eager.classification), rel=1e-4)
    scores = model.detect(predictions, tf.constant([[96, 64], [96, 64]])).scores
    np.testing.assert_allclose(detections.scores.numpy(), scores.numpy(), atol=1e-5)


def test_any_batch_size_fits_one_compiled_function(model):
    spec = tf.TensorSpec((None, 96, 64, 3), tf.float32)
    compiled = tf.function(lambda x: model(x), input_signature=[spec])
    for batch in (1, 3):
        assert compiled(tf.zeros((batch, 96, 64, 3))).box_encodings.shape == (batch, NUM_ANCHORS, 4)
