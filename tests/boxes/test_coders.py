import math

import numpy as np
import pytest
import tensorflow as tf

from tandem.boxes.coders import FasterRcnnBoxCoder

CODER = FasterRcnnBoxCoder()


def random_boxes(seed, shape=(50,)):
    rng = np.random.default_rng(seed)
    low = rng.uniform(0, 0.6, (*shape, 2))
    return np.concatenate([low, low + rng.uniform(0.01, 0.4, (*shape, 2))], -1).astype(np.float32)


def test_a_code_is_what_the_paper_says():
    # Anchor: centre (2, 2), 4 x 4. Box: centre (3, 1), 2 high, 8 wide.
    anchor, box = tf.constant([0.0, 0.0, 4.0, 4.0]), tf.constant([2.0, -3.0, 4.0, 5.0])
    code = CODER.encode(box, anchors=anchor)
    expected = [10 * 0.25, 10 * -0.25, 5 * math.log(0.5), 5 * math.log(2)]
    np.testing.assert_allclose(code, expected, rtol=1e-6)


def test_an_anchor_itself_has_a_code_of_zeros():
    anchors = tf.constant(random_boxes(0))
    np.testing.assert_allclose(CODER.encode(anchors, anchors=anchors), tf.zeros([50, 4]), atol=1e-6)


def test_decoding_inverts_encoding(run):
    boxes, anchors = tf.constant(random_boxes(1, (2, 30))), tf.constant(random_boxes(2, (30,)))
    back = run(lambda b: CODER.decode(CODER.encode(b, anchors=anchors), anchors=anchors), boxes)
    np.testing.assert_allclose(back, boxes, atol=2e-6)


def test_an_empty_box_has_a_finite_code_and_gradient():
    box = tf.Variable([[0.5, 0.5, 0.5, 0.5]])
    with tf.GradientTape() as tape:
        code = CODER.encode(box, anchors=tf.constant([[0.0, 0.0, 1.0, 1.0]]))
    assert np.isfinite(code).all()
    assert np.isfinite(tape.gradient(code, box)).all()


@pytest.mark.parametrize(("name", "scales"), [("frcnn", (10, 10, 5, 5)), ("frcnn_unit", [1] * 4)])
def test_codes_and_boxes_equal_those_of_the_original(name, scales, components, run):
    case, arrays = components.cases[f"box_coder/{name}"], components.arrays
    coder = FasterRcnnBoxCoder(*scales)
    anchors = tf.constant(arrays[case["anchors"]])
    codes = run(lambda b: coder.encode(b, anchors=anchors), tf.constant(arrays[case["boxes"]]))
    np.testing.assert_allclose(codes, arrays[case["encoded"]], atol=1e-5)
    boxes = run(lambda c: coder.decode(c, anchors=anchors), tf.constant(arrays[case["codes"]]))
    np.testing.assert_allclose(boxes, arrays[case["decoded"]], atol=1e-6)
