import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import text_format

from tandem.boxes.build import build_matcher
from tandem.boxes.coders import FasterRcnnBoxCoder
from tandem.boxes.geometry import intersection_over_union
from tandem.boxes.matchers import IGNORED, UNMATCHED, ArgmaxMatcher
from tandem.boxes.targets import Groundtruth, assign_targets
from tandem.protos import matcher_pb2

CODER = FasterRcnnBoxCoder()
ANCHORS = np.array(
    [[0.0, 0.0, 0.5, 0.5], [0.0, 0.5, 0.5, 1.0], [0.5, 0.0, 1.0, 0.5], [0.5, 0.5, 1.0, 1.0]],
    np.float32,
)


def groundtruth(boxes, classes, weights=None, num_boxes=None):
    classes = tf.constant(classes, tf.int32)
    batch, rows = classes.shape
    return Groundtruth(
        boxes=tf.constant(boxes, tf.float32),
        classes=classes,
        weights=tf.ones([batch, rows]) if weights is None else tf.constant(weights, tf.float32),
        num_boxes=tf.fill([batch], rows) if num_boxes is None else tf.constant(num_boxes),
    )


def assign(truth, **overrides):
    arguments = {
        "anchors": tf.constant(ANCHORS),
        "num_classes": 2,
        "similarity": intersection_over_union,
        "matcher": ArgmaxMatcher(matched_threshold=0.5),
        "box_coder": CODER,
        "background_as_zeros": True,
    }
    return assign_targets(truth, **{**arguments, **overrides})


ONE_BOX = groundtruth([[[0.0, 0.5, 0.5, 0.9]]], [[1]], weights=[[0.25]])


def test_the_matched_anchor_gets_the_code_class_and_weight_of_its_box():
    targets = assign(ONE_BOX)
    np.testing.assert_array_equal(targets.matches, [[UNMATCHED, 0, UNMATCHED, UNMATCHED]])
    code = CODER.encode(ONE_BOX.boxes[0, 0], anchors=tf.constant(ANCHORS[1]))
    np.testing.assert_array_equal(targets.box_targets[0, 1], code)
    np.testing.assert_array_equal(targets.class_targets[0, 1], [0.0, 0.0, 1.0])
    np.testing.assert_array_equal(targets.box_weights, [[0.0, 0.25, 0.0, 0.0]])
    np.testing.assert_array_equal(targets.class_weights[..., 0], [[1.0, 0.25, 1.0, 1.0]])


def test_an_unmatched_anchor_has_no_box_target_and_is_background():
    zeros = assign(ONE_BOX, background_as_zeros=True)
    np.testing.assert_array_equal(zeros.class_targets[0, 0], [0.0, 0.0, 0.0])
    one_hot = assign(ONE_BOX, background_as_zeros=False)
    np.testing.assert_array_equal(one_hot.class_targets[0, 0], [1.0, 0.0, 0.0])
    np.testing.assert_array_equal(one_hot.box_targets[0, 0], np.zeros(4))


def test_background_has_its_own_weight():
    weights = assign(ONE_BOX, negative_class_weight=0.1).class_weights[0, :, 0]
    np.testing.assert_allclose(weights, [0.1, 0.25, 0.1, 0.1])


def test_an_ignored_anchor_has_no_weight_at_all():
    matcher = ArgmaxMatcher(matched_threshold=0.9, unmatched_threshold=0.3)
    targets = assign(ONE_BOX, matcher=matcher)
    assert targets.matches[0, 1] == IGNORED
    assert targets.class_weights[0, 1, 0] == 0.0
    assert targets.box_weights[0, 1] == 0.0


def test_a_box_of_weight_zero_takes_its_anchors_out_of_the_loss_but_is_never_forced():
    matcher = ArgmaxMatcher(matched_threshold=0.5, force_match_for_each_row=True)
    truth = groundtruth(
        [[[0.0, 0.5, 0.5, 0.9], [0.5, 0.0, 0.6, 0.1]]], [[1, 0]], weights=[[0.0, 0.0]]
    )
    targets = assign(truth, matcher=matcher)
    np.testing.assert_array_equal(targets.matches, [[UNMATCHED, 0, UNMATCHED, UNMATCHED]])
    np.testing.assert_array_equal(targets.class_weights[0, :, 0], [1.0, 0.0, 1.0, 1.0])


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_an_image_without_boxes_is_all_background(rows, run):
    truth = groundtruth(np.zeros((1, rows, 4)), np.zeros((1, rows)), num_boxes=[0])
    targets = run(lambda: assign(truth, background_as_zeros=False))
    np.testing.assert_array_equal(targets.matches, [[UNMATCHED] * 4])
    np.testing.assert_array_equal(targets.class_targets, [[[1.0, 0.0, 0.0]] * 4])
    np.testing.assert_array_equal(targets.box_weights, np.zeros((1, 4)))
    np.testing.assert_array_equal(targets.box_targets, np.zeros((1, 4, 4)))


@pytest.mark.parametrize("garbage", [0.25, np.nan, np.inf, -7.0])
def test_padding_changes_nothing_whatever_it_holds(garbage, run):
    rng = np.random.default_rng(0)
    low = rng.uniform(0, 0.5, (3, 2, 2))
    boxes = np.concatenate([low, low + rng.uniform(0.2, 0.5, (3, 2, 2))], -1)
    classes, weights = rng.integers(0, 2, (3, 2)), rng.uniform(0.1, 1, (3, 2))
    matcher = ArgmaxMatcher(matched_threshold=0.5, force_match_for_each_row=True)
    plain = assign(groundtruth(boxes, classes, weights), matcher=matcher)

    def pad(values, filling):
        shape = (3, 5, *values.shape[2:])
        return np.concatenate([values, np.full(shape, filling, values.dtype)], axis=1)

    padded = groundtruth(pad(boxes, garbage), pad(classes, 99), pad(weights, garbage), [2, 2, 2])
    for found, expected in zip(run(lambda: assign(padded, matcher=matcher)), plain, strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", ["m55", "m55_force", "m73", "m73_inv", "ignore"])
@pytest.mark.parametrize("negative", ["1", "0.25"])
def test_targets_equal_those_of_the_original(name, negative, components):
    case, arrays = components.cases[f"target_assigner/{name}_neg{negative}"], components.arrays
    matcher = text_format.Parse(f"argmax_matcher {{ {case['matcher']} }}", matcher_pb2.Matcher())
    # The original is given one-hot labels with the background first.
    classes = arrays["ta/labels"].argmax(axis=1) - 1
    truth = groundtruth(arrays["match/gt"][None], classes[None], arrays["ta/weights"][None])
    targets = assign(
        truth,
        anchors=tf.constant(arrays["match/anchors"]),
        num_classes=4,
        matcher=build_matcher(matcher),
        background_as_zeros=False,
        negative_class_weight=float(negative),
    )
    np.testing.assert_array_equal(targets.matches[0], arrays[case["match"]])
    np.testing.assert_array_equal(targets.class_targets[0], arrays[case["cls_targets"]])
    np.testing.assert_allclose(targets.box_targets[0], arrays[case["reg_targets"]], atol=1e-5)
    np.testing.assert_array_equal(targets.box_weights[0], arrays[case["reg_weights"]])
    weights = np.tile(targets.class_weights[0], [1, 5])
    np.testing.assert_array_equal(weights, arrays[case["cls_weights"]])


def test_an_image_without_boxes_has_the_targets_of_the_original(components):
    case, arrays = components.cases["target_assigner/no_gt"], components.arrays
    num_classes = arrays[case["cls_targets"]].shape[-1] - 1
    targets = assign(
        groundtruth(np.zeros((1, 0, 4)), np.zeros((1, 0))),
        anchors=tf.constant(arrays["match/anchors"]),
        num_classes=num_classes,
        background_as_zeros=not arrays[case["cls_targets"]].any(),
    )
    np.testing.assert_array_equal(targets.matches[0], arrays[case["match"]])
    np.testing.assert_array_equal(targets.class_targets[0], arrays[case["cls_targets"]])
    np.testing.assert_array_equal(targets.box_targets[0], arrays[case["reg_targets"]])
    np.testing.assert_array_equal(targets.box_weights[0], arrays[case["reg_weights"]])
    weights = np.tile(targets.class_weights[0], [1, num_classes + 1])
    np.testing.assert_array_equal(weights, arrays[case["cls_weights"]])
