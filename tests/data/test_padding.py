import pytest
import tensorflow as tf

from tandem import fields
from tandem.data.padding import NUM_DROPPED_BOXES, pad_example, pad_to_one_row


def example(num_boxes):
    return {
        fields.BOXES: tf.ones([num_boxes, 4]),
        fields.CLASSES: tf.range(num_boxes) + 1,
        fields.WEIGHTS: tf.ones([num_boxes]),
        fields.IS_CROWD: tf.ones([num_boxes], tf.bool),
        fields.AREA: tf.ones([num_boxes]),
        fields.NUM_BOXES: tf.convert_to_tensor(num_boxes),
    }


@pytest.mark.parametrize(
    ("num_boxes", "kept", "dropped"), [(0, 0, 0), (2, 2, 0), (3, 3, 0), (5, 3, 2)]
)
def test_rows_are_padded_with_zeros_or_cut_and_counted(num_boxes, kept, dropped):
    padded = pad_example(example(num_boxes), max_boxes=3)

    assert padded[fields.WEIGHTS].numpy().tolist() == [1.0] * kept + [0.0] * (3 - kept)
    assert padded[fields.CLASSES].numpy().tolist() == [*range(1, kept + 1)] + [0] * (3 - kept)
    assert padded[fields.BOXES].numpy()[kept:].sum() == 0
    assert padded[fields.IS_CROWD].numpy().sum() == kept
    assert padded[fields.NUM_BOXES] == kept
    assert padded[NUM_DROPPED_BOXES] == dropped


def test_shapes_are_static_inside_tf_data():
    dataset = tf.data.Dataset.range(2).map(
        lambda n: pad_example(example(tf.cast(n, tf.int32)), max_boxes=3)
    )

    assert dataset.element_spec[fields.BOXES].shape == [3, 4]
    assert [int(padded[fields.NUM_BOXES]) for padded in dataset] == [0, 1]


def test_an_image_without_boxes_gets_one_row_of_padding():
    assert pad_to_one_row(example(0))[fields.BOXES].numpy().tolist() == [[0, 0, 0, 0]]
    assert pad_to_one_row(example(0))[fields.NUM_BOXES] == 0
    assert pad_to_one_row(example(2))[fields.BOXES].shape == [2, 4]
