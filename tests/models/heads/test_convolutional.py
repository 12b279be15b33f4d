"""The convolutional box predictor: order of anchors, names, and every option."""

from dataclasses import replace
from functools import partial

import keras
import numpy as np
import pytest
import tensorflow as tf

from tandem.models.heads.convolutional import ConvolutionalBoxPredictor, HeadParams
from tandem.models.hyperparams.params import BatchNormParams, ConvParams

PARAMS = HeadParams(
    num_class_slots=3,
    box_code_size=4,
    kernel_size=3,
    use_depthwise=False,
    num_layers_before_predictor=0,
    min_depth=0,
    max_depth=0,
    class_bias=-4.6,
    dropout_rate=0.0,
    sigmoid_scores=False,
    box_clip_range=None,
    conv=ConvParams(
        partial(keras.initializers.TruncatedNormal, stddev=0.03),
        regularizer=None,
        activation=tf.nn.relu6,
        batch_norm=BatchNormParams(decay=0.97, epsilon=0.001),
    ),
)
MAPS = (tf.ones((2, 2, 3, 5)), tf.ones((2, 1, 1, 7)))


def predictor(**changes):
    return ConvolutionalBoxPredictor((5, 7), num_anchors=(2, 3), params=replace(PARAMS, **changes))


def zero_kernels(layer):
    for weight in layer.weights:
        if weight.name in ("weights", "depthwise_weights"):
            weight.assign(tf.zeros(weight.shape))


@pytest.mark.parametrize("use_depthwise", [False, True])
def test_every_anchor_of_every_map_gets_a_code_and_scores(use_depthwise):
    boxes, classes = predictor(use_depthwise=use_depthwise)(MAPS)
    assert boxes.shape == (2, 2 * 3 * 2 + 3, 4)
    assert classes.shape == (2, 2 * 3 * 2 + 3, 3)


def test_anchors_run_by_map_row_column_and_shape():
    built = predictor()
    zero_kernels(built)
    for i, head in enumerate(built.heads):
        size = head.boxes.last.bias.shape[0]
        head.boxes.last.bias.assign(100.0 * i + tf.range(size, dtype=tf.float32))
    # Identity of the location comes from a kernel that copies the map's first channel.
    first = built.heads[0].boxes.last
    kernel = np.zeros(first.kernel.shape, np.float32)
    kernel[1, 1, 0, :] = 10.0
    first.kernel.assign(kernel)
    location = tf.reshape(tf.range(6, dtype=tf.float32), (1, 2, 3, 1)) * tf.ones((1, 2, 3, 5))
    boxes, _ = built((location, MAPS[1][:1]))
    codes = boxes.numpy()[0, :, 0]
    expected = [10.0 * place + 4.0 * shape for place in range(6) for shape in range(2)]
    assert codes.tolist() == [*expected, 100.0, 104.0, 108.0]


@pytest.mark.parametrize("use_depthwise", [False, True])
def test_class_scores_start_at_the_configured_bias(use_depthwise):
    built = predictor(use_depthwise=use_depthwise)
    zero_kernels(built)
    boxes, classes = built(MAPS)
    assert np.all(classes.numpy() == np.float32(-4.6))
    assert np.all(boxes.numpy() == 0.0)


def test_names_are_those_of_ssdlite_checkpoints():
    names = {weight.path for weight in predictor(use_depthwise=True).weights}
    assert "BoxPredictor_0/BoxEncodingPredictor/biases" in names
    assert "BoxPredictor_1/ClassPredictor_depthwise/BatchNorm/gamma" in names
    assert "BoxPredictor_1/ClassPredictor_depthwise/depthwise_weights" in names
    assert len(names) == 2 * 2 * (2 + 5)


def test_a_lone_map_has_no_scope_of_its_own():
    built = ConvolutionalBoxPredictor((5,), num_anchors=(2,), params=PARAMS)
    assert {weight.path.partition("/")[0] for weight in built.weights} == {
        "BoxEncodingPredictor",
        "ClassPredictor",
    }


def test_shared_layers_come_before_boxes_and_classes():
    built = predictor(num_layers_before_predictor=2, min_depth=4, max_depth=6)
    names = {weight.path: tuple(weight.shape) for weight in built.weights}
    assert names["BoxPredictor_0/Conv2d_0_1x1_5/weights"] == (1, 1, 5, 5)
    assert names["BoxPredictor_1/Conv2d_1_1x1_6/weights"] == (1, 1, 6, 6)
    assert names["BoxPredictor_1/ClassPredictor/weights"] == (3, 3, 6, 9)


def test_no_depth_leaves_shared_layers_out():
    built = predictor(num_layers_before_predictor=2, min_depth=0, max_depth=0)
    assert all("Conv2d" not in weight.path for weight in built.weights)


def test_dropout_acts_on_classes_in_training_only():
    built = predictor(dropout_rate=0.5)
    boxes, classes = built(MAPS, training=False)
    again_boxes, again = built(MAPS, training=False)
    np.testing.assert_array_equal(classes.numpy(), again.numpy())
    trained_boxes, trained = built(MAPS, training=True)
    np.testing.assert_array_equal(boxes.numpy(), again_boxes.numpy())
    np.testing.assert_allclose(boxes.numpy(), trained_boxes.numpy(), atol=1e-6)
    assert not np.allclose(classes.numpy(), trained.numpy())


def test_codes_are_clipped_and_scores_converted_where_asked():
    built = predictor(box_clip_range=(-0.5, 0.25), sigmoid_scores=True, class_bias=0.0)
    zero_kernels(built)
    built.heads[0].boxes.last.bias.assign([-1.0, 1.0, 0.1, 0.0] * 2)
    boxes, classes = built(MAPS)
    np.testing.assert_allclose(boxes.numpy()[0, 0], [-0.5, 0.25, 0.1, 0.0])
    assert np.all(classes.numpy() == 0.5)
