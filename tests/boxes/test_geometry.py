import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tandem.boxes import geometry

UNIT = tf.constant([0.0, 0.0, 1.0, 1.0])


def boxes_strategy(num=3):
    corners = hnp.arrays(np.float32, (num, 2, 2), elements=st.floats(-2, 2, width=32))
    return corners.map(lambda c: np.concatenate([c.min(1), c.max(1)], -1).astype(np.float32))


def test_area_is_height_times_width():
    boxes = tf.constant([[0.0, 0.0, 2.0, 3.0], [1.0, 1.0, 1.0, 5.0]])
    np.testing.assert_array_equal(geometry.area(boxes), [6.0, 0.0])


def test_overlaps_are_those_worked_out_by_hand():
    boxes = tf.constant([[0.0, 0.0, 2.0, 2.0]])
    others = tf.constant([[1.0, 1.0, 3.0, 3.0], [0.0, 0.0, 2.0, 2.0], [5.0, 5.0, 6.0, 6.0]])
    np.testing.assert_allclose(geometry.intersection(boxes, others), [[1.0, 4.0, 0.0]])
    iou = geometry.intersection_over_union(boxes, others)
    np.testing.assert_allclose(iou, [[1 / 7, 1.0, 0.0]], rtol=1e-6)
    share = geometry.intersection_over_area(boxes, others)
    np.testing.assert_allclose(share, [[0.25, 1.0, 0.0]])


def test_touching_boxes_do_not_overlap():
    iou = geometry.intersection_over_union(
        tf.constant([[0.0, 0.0, 1.0, 1.0]]), tf.constant([[0.0, 1.0, 1.0, 2.0]])
    )
    np.testing.assert_array_equal(iou, [[0.0]])


def test_empty_boxes_overlap_nothing_and_give_no_nan():
    empty = tf.zeros([1, 4])
    others = tf.constant([[0.0, 0.0, 0.0, 0.0], [-1.0, -1.0, 1.0, 1.0]])
    np.testing.assert_array_equal(geometry.intersection_over_union(empty, others), [[0.0, 0.0]])
    np.testing.assert_array_equal(geometry.intersection_over_area(empty, others), [[0.0, 0.0]])


def test_leading_axes_broadcast():
    boxes = tf.random.stateless_uniform([2, 5, 4], seed=(1, 2))
    others = tf.random.stateless_uniform([7, 4], seed=(3, 4))
    batched = geometry.intersection_over_union(boxes, others)
    assert batched.shape == (2, 5, 7)
    for image in range(2):
        single = geometry.intersection_over_union(boxes[image], others)
        np.testing.assert_array_equal(batched[image], single)


@settings(deadline=None, max_examples=50)
@given(boxes_strategy(), boxes_strategy(4))
def test_overlap_is_symmetric_and_between_zero_and_one(boxes, others):
    iou = geometry.intersection_over_union(tf.constant(boxes), tf.constant(others)).numpy()
    back = geometry.intersection_over_union(tf.constant(others), tf.constant(boxes)).numpy()
    np.testing.assert_array_equal(iou, back.T)
    assert (iou >= 0).all()
    assert (iou <= 1 + 1e-6).all()


@settings(deadline=None, max_examples=50)
@given(boxes_strategy())
def test_clipped_boxes_lie_in_the_window_and_keep_what_they_share_with_it(boxes):
    clipped = geometry.clip_to_window(tf.constant(boxes), UNIT)
    assert (clipped.numpy() >= 0).all()
    assert (clipped.numpy() <= 1).all()
    shared = geometry.intersection(tf.constant(boxes), UNIT[tf.newaxis])[:, 0]
    np.testing.assert_allclose(geometry.area(clipped), shared, atol=1e-6)


def test_each_image_has_its_own_window():
    boxes = tf.constant([[[0.0, 0.0, 1.0, 1.0]], [[0.0, 0.0, 1.0, 1.0]]])
    windows = tf.constant([[0.0, 0.0, 0.5, 1.0], [0.25, 0.25, 0.75, 1.0]])
    clipped = geometry.clip_to_window(boxes, windows)
    np.testing.assert_array_equal(clipped[:, 0], windows)
    framed = geometry.change_coordinate_frame(clipped, windows)
    np.testing.assert_array_equal(framed[:, 0], [[0, 0, 1, 1], [0, 0, 1, 1]])


def test_scaling_takes_y_by_height_and_x_by_width():
    scaled = geometry.scale(tf.constant([[0.1, 0.2, 0.5, 0.4]]), tf.constant([100.0, 10.0]))
    np.testing.assert_allclose(scaled, [[10.0, 2.0, 50.0, 4.0]])


def test_geometry_works_in_a_dataset():
    boxes = tf.constant([[[0.0, 0.0, 2.0, 2.0]], [[-1.0, 0.0, 0.5, 0.5]]])
    clipped = tf.data.Dataset.from_tensor_slices(boxes).map(
        lambda b: geometry.clip_to_window(b, UNIT)
    )
    np.testing.assert_array_equal([b.numpy()[0] for b in clipped], [[0, 0, 1, 1], [0, 0, 0.5, 0.5]])


def test_overlap_equals_the_original(components, run):
    arrays = components.arrays
    iou = run(
        geometry.intersection_over_union,
        tf.constant(arrays["match/gt"]),
        tf.constant(arrays["match/anchors"]),
    )
    np.testing.assert_allclose(iou, arrays["sim/iou"], atol=1e-7)


@pytest.mark.parametrize(
    ("function", "name"),
    [(geometry.clip_to_window, "clip"), (geometry.change_coordinate_frame, "change_frame")],
)
def test_windows_act_as_in_the_original(function, name, components, run):
    case = components.cases[f"box_ops/{name}"]
    boxes = tf.constant(components.arrays[case["boxes"]])
    found = run(function, boxes, tf.constant(case["window"]))
    np.testing.assert_allclose(found, components.arrays[case["out"]], atol=1e-6)


def test_boxes_with_enough_of_themselves_in_a_window_are_those_of_the_original(components):
    case = components.cases["box_ops/prune_non_overlapping"]
    boxes = tf.constant(components.arrays["match/gt"])
    share = geometry.intersection_over_area(boxes, tf.constant([case["other"]]))[:, 0]
    keep = np.flatnonzero(share.numpy() >= case["minoverlap"])
    np.testing.assert_array_equal(keep, components.arrays[case["keep"]])
    np.testing.assert_array_equal(tf.gather(boxes, keep), components.arrays[case["out"]])
