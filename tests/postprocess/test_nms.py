import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tandem.postprocess.nms import NonMaxSuppression

LIMITS = {"score_threshold": 0.1, "iou_threshold": 0.5, "max_per_class": 10, "max_total": 10}


def select(boxes, scores, *, visible=None, **limits):
    boxes, scores = np.asarray(boxes, np.float32), np.asarray(scores, np.float32)
    visible = np.ones(boxes.shape[:2], bool) if visible is None else np.asarray(visible)
    suppression = NonMaxSuppression(**{**LIMITS, **limits})
    return suppression.select(
        tf.constant(boxes), scores=tf.constant(scores), visible=tf.constant(visible)
    )


def found(selection, image=0):
    """(anchor, class) of each detection of an image."""
    number = int(selection.num_selected[image])
    pairs = zip(
        selection.anchor_indices[image].numpy().tolist(),
        selection.classes[image].numpy().tolist(),
        strict=True,
    )
    return list(pairs)[:number]


def iou(a, b):
    height, width = np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])
    shared = max(height, 0) * max(width, 0)
    areas = [(x[2] - x[0]) * (x[3] - x[1]) for x in (a, b)]
    return shared / (sum(areas) - shared) if min(areas) > 0 else 0.0


def textbook(boxes, scores, *, visible, score_threshold, iou_threshold, max_per_class, max_total):
    """One image, by the definition."""
    survivors = []
    for label in range(scores.shape[1]):
        kept = []
        for anchor in np.argsort(-scores[:, label], kind="stable"):
            if len(kept) == max_per_class or scores[anchor, label] <= score_threshold:
                break
            if all(iou(boxes[anchor], boxes[other]) <= iou_threshold for other in kept):
                kept.append(anchor)
        survivors += [(anchor, label) for anchor in kept if visible[anchor]]
    survivors.sort(key=lambda pair: -scores[pair])
    return [(int(anchor), label) for anchor, label in survivors][:max_total]


A, NEAR_A, FAR = [0, 0, 1, 1], [0, 0, 1, 0.9], [5, 5, 6, 6]


def test_a_box_near_a_better_one_of_its_class_is_dropped():
    selection = select([[A, NEAR_A, FAR]], [[[0.8], [0.9], [0.3]]])
    assert found(selection) == [(1, 0), (2, 0)]
    np.testing.assert_allclose(selection.scores[0, :3], [0.9, 0.3, 0.0], rtol=1e-6)


def test_classes_do_not_suppress_each_other():
    assert found(select([[A, NEAR_A]], [[[0.8, 0.0], [0.0, 0.9]]])) == [(1, 1), (0, 0)]


def test_one_anchor_can_be_found_as_two_classes():
    assert found(select([[A]], [[[0.8, 0.9]]])) == [(0, 1), (0, 0)]


def test_a_dropped_box_suppresses_nothing():
    # Each overlaps its neighbours by 0.6, and the one after by 0.33.
    boxes = [[[0, x, 1, x + 1] for x in (0, 0.25, 0.5)]]
    assert found(select(boxes, [[[0.9], [0.8], [0.7]]])) == [(0, 0), (2, 0)]


def test_scores_and_overlaps_at_the_threshold_do_not_count():
    boxes = [[[0, 0, 1, 1], [0, 0, 1, 0.5]]]
    assert found(select(boxes, [[[0.9], [0.8]]])) == [(0, 0), (1, 0)]
    assert found(select(boxes, [[[0.9], [0.5]]], score_threshold=0.5)) == [(0, 0)]


def test_the_limits_per_class_and_in_all_hold():
    boxes = [[[i, 0, i + 1, 1] for i in range(4)]]
    scores = [[[0.9, 0.5], [0.8, 0.4], [0.7, 0.3], [0.6, 0.2]]]
    assert found(select(boxes, scores, max_per_class=2)) == [(0, 0), (1, 0), (0, 1), (1, 1)]
    assert found(select(boxes, scores, max_per_class=3, max_total=4)) == [
        (0, 0), (1, 0), (2, 0), (0, 1),
    ]  # fmt: skip


def test_equal_scores_are_ordered_by_class_then_anchor():
    boxes = [[[i, 0, i + 1, 1] for i in range(3)]]
    selection = select(boxes, np.full((1, 3, 2), 0.5))
    assert found(selection) == [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)]


def test_of_equal_boxes_with_equal_scores_the_first_stays():
    assert found(select([[A, A, A]], [[[0.5], [0.5], [0.5]]])) == [(0, 0)]


def test_an_invisible_box_suppresses_and_counts_but_is_not_returned():
    boxes, scores = [[A, NEAR_A, FAR]], [[[0.9], [0.8], [0.7]]]
    visible = [[False, True, True]]
    assert found(select(boxes, scores, visible=visible)) == [(2, 0)]
    assert found(select(boxes, scores, visible=visible, max_per_class=1)) == []


def test_scores_that_are_not_numbers_are_never_chosen():
    assert found(select([[A, FAR]], [[[np.nan], [0.5]]])) == [(1, 0)]


def test_rows_without_a_detection_are_zeros_of_the_asked_number():
    selection = select([[A], [A]], [[[0.05]], [[0.5]]], max_total=25)
    for values in selection[:3]:
        assert values.shape == (2, 25)
        np.testing.assert_array_equal(values[0], np.zeros(25))
    np.testing.assert_array_equal(selection.num_selected, [0, 1])


def test_shapes_are_static_in_a_graph():
    suppression = NonMaxSuppression(**LIMITS)

    @tf.function(input_signature=[tf.TensorSpec([None, 7, 4]), tf.TensorSpec([None, 7, 3])])
    def graph(boxes, scores):
        visible = tf.ones(tf.shape(boxes)[:2], tf.bool)
        selection = suppression.select(boxes, scores=scores, visible=visible)
        assert [x.shape.as_list() for x in selection] == [[None, 10]] * 3 + [[None]]
        return selection

    graph(tf.zeros([2, 7, 4]), tf.zeros([2, 7, 3]))


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32 - 1), st.integers(1, 25), st.integers(1, 4), st.booleans())
def test_the_selection_is_that_of_the_textbook(seed, num_anchors, num_classes, ties):
    rng = np.random.default_rng(seed)
    # Corners and scores on coarse grids, so that ties and equal boxes are common.
    low = rng.integers(0, 4, (2, num_anchors, 2)) / 4
    boxes = np.concatenate([low, low + rng.integers(0, 4, low.shape) / 4], -1).astype(np.float32)
    scores = rng.uniform(size=(2, num_anchors, num_classes)).astype(np.float32)
    scores = np.round(scores, 1 if ties else 5)
    limits = {**LIMITS, "max_per_class": 5, "iou_threshold": 0.4}
    visible = rng.uniform(size=(2, num_anchors)) < 0.8
    selection = select(boxes, scores, visible=visible, **limits)
    for image in range(2):
        expected = textbook(boxes[image], scores[image], visible=visible[image], **limits)
        assert found(selection, image) == expected


@pytest.mark.parametrize("batch", [1, 3])
def test_a_batch_is_done_image_by_image(batch, run):
    rng = np.random.default_rng(0)
    low = rng.uniform(0, 0.7, (batch, 40, 2))
    boxes = np.concatenate([low, low + rng.uniform(0.1, 0.3, low.shape)], -1)
    scores = rng.uniform(size=(batch, 40, 3))
    together = run(lambda: select(boxes, scores))
    for image in range(batch):
        alone = select(boxes[image : image + 1], scores[image : image + 1])
        assert found(together, image) == found(alone)
