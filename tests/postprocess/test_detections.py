import numpy as np
import pytest
import tensorflow as tf

from tandem.postprocess.detections import PostProcessor
from tandem.postprocess.nms import NonMaxSuppression
from tandem.postprocess.scores import ScoreConverter, ScoreFunction

WHOLE = tf.constant([0.0, 0.0, 1.0, 1.0])


def post_processor(*, function=ScoreFunction.IDENTITY, change_coordinate_frame=False, **limits):
    defaults = {"score_threshold": 0.1, "iou_threshold": 0.5, "max_per_class": 5, "max_total": 5}
    return PostProcessor(
        convert_scores=ScoreConverter(function),
        suppression=NonMaxSuppression(**{**defaults, **limits}),
        change_coordinate_frame=change_coordinate_frame,
    )


BOXES = tf.constant([[[0.1, 0.2, 0.4, 0.6], [0.5, 0.5, 1.5, 1.5], [2.0, 2.0, 3.0, 3.0]]])
# Columns: background, class 0, class 1.
LOGITS = tf.constant([[[9.0, 0.2, 0.5], [9.0, 0.9, 0.0], [9.0, 0.0, 0.8]]])


def test_detections_are_clipped_scored_and_sorted():
    detections = post_processor()(BOXES, class_logits=LOGITS, clip_window=WHOLE)
    np.testing.assert_array_equal(detections.num_detections, [3])
    np.testing.assert_array_equal(detections.classes, [[0, 1, 0, 0, 0]])
    np.testing.assert_allclose(detections.scores, [[0.9, 0.5, 0.2, 0.0, 0.0]])
    np.testing.assert_array_equal(detections.anchor_indices, [[1, 0, 0, 0, 0]])
    np.testing.assert_array_equal(detections.boxes[0, 0], [0.5, 0.5, 1.0, 1.0])
    np.testing.assert_array_equal(detections.boxes[0, 3:], np.zeros((2, 4)))
    np.testing.assert_array_equal(
        detections.multiclass_scores[0, :3], tf.gather(LOGITS[0], [1, 0, 0])
    )
    np.testing.assert_array_equal(detections.multiclass_scores[0, 3:], np.zeros((2, 3)))


def test_the_background_is_never_detected():
    logits = tf.constant([[[9.0, 0.0, 0.0]] * 3])
    detections = post_processor()(BOXES, class_logits=logits, clip_window=WHOLE)
    np.testing.assert_array_equal(detections.num_detections, [0])


def test_boxes_can_be_given_relative_to_the_content_of_the_image():
    window = tf.constant([[0.0, 0.0, 0.5, 1.0]])  # the lower half is padding
    detections = post_processor(change_coordinate_frame=True)(
        BOXES, class_logits=LOGITS, clip_window=window
    )
    np.testing.assert_array_equal(detections.num_detections, [2])  # (0.5, 0.5, ...) is cut away
    np.testing.assert_allclose(detections.boxes[0, 0], [0.2, 0.2, 0.8, 0.6], rtol=1e-6)


def test_boxes_beyond_the_valid_ones_do_not_count():
    detections = post_processor()(
        BOXES, class_logits=LOGITS, clip_window=WHOLE, num_valid=tf.constant([1])
    )
    np.testing.assert_allclose(detections.scores[0, :2], [0.5, 0.2])
    np.testing.assert_array_equal(detections.num_detections, [2])


@pytest.mark.parametrize("garbage", [np.nan, np.inf, 0.3])
def test_padding_changes_nothing_whatever_it_holds(garbage):
    def padded(values):
        filling = np.full((1, 4, values.shape[2]), garbage, np.float32)
        return tf.concat([values, filling], axis=1)

    process = post_processor(function=ScoreFunction.SIGMOID)
    plain = process(BOXES, class_logits=LOGITS, clip_window=WHOLE)
    found = process(
        padded(BOXES), class_logits=padded(LOGITS), clip_window=WHOLE, num_valid=tf.constant([3])
    )
    for value, expected in zip(found, plain, strict=True):
        np.testing.assert_array_equal(value, expected)


@pytest.mark.parametrize(
    "name",
    [
        "plain",
        "clip",
        "clip_change_frame",
        "num_valid",
        "static_shapes",
        "static_shapes_few",
        "hard_nms",
        "iou1",
    ],
)
def test_detections_equal_those_of_the_original(name, components, run):
    case, arrays = components.cases[f"nms/{name}"], components.arrays
    params = case["params"]
    process = post_processor(
        change_coordinate_frame=params.get("change_coordinate_frame", False),
        score_threshold=params["score_thresh"],
        iou_threshold=params["iou_thresh"],
        max_per_class=params["max_size_per_class"],
        max_total=params["max_total_size"],
    )
    boxes, scores = arrays[case["boxes"]][:, :, 0], arrays[case["scores"]]
    logits = np.concatenate([np.ones((*scores.shape[:2], 1), np.float32), scores], axis=-1)
    # Without a window the original doesn't clip: here one that all boxes lie in.
    window = arrays["nms/clip_window"] if "clip_window" in params else [[-9.0, -9.0, 9.0, 9.0]] * 2
    num_valid = None if case["num_valid"] is None else tf.constant(case["num_valid"])
    found = run(
        lambda: process(
            tf.constant(boxes),
            class_logits=tf.constant(logits),
            clip_window=tf.constant(window),
            num_valid=num_valid,
        )
    )
    np.testing.assert_array_equal(found.num_detections, arrays[case["num"]])
    for image, number in enumerate(arrays[case["num"]]):
        rows = (image, slice(number))

        def expected(name, rows=rows):
            return arrays[name][rows]

        np.testing.assert_allclose(found.boxes[rows], expected(case["boxes_out"]), atol=1e-6)
        np.testing.assert_allclose(found.scores[rows], expected(case["scores_out"]), atol=1e-6)
        np.testing.assert_array_equal(found.classes[rows], expected(case["classes_out"]))
        anchors = expected(case["additional"]["anchor_indices"])
        np.testing.assert_array_equal(found.anchor_indices[rows], anchors)
        np.testing.assert_array_equal(
            found.multiclass_scores[rows], logits[image][anchors.astype(int)]
        )
