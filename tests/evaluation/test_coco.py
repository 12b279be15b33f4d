"""The evaluator on small inputs, most of them cases from public bug reports (C23 ... C29)."""

import numpy as np
import pytest

from tandem.errors import DataError
from tandem.evaluation.coco import (
    CocoEvaluator,
    ImageDetections,
    ImageGroundtruth,
    absolute_boxes,
)

BOX = (10, 10, 60, 60)
OTHER_BOX = (100, 100, 150, 150)
AP_OF_ALL_101_RECALLS = pytest.approx(1.0)


def groundtruth(*boxes, classes=None, is_crowd=None, area=None):
    return ImageGroundtruth(
        boxes=np.array(boxes, np.float32).reshape(-1, 4),
        classes=np.array(classes if classes is not None else [0] * len(boxes), np.int32),
        is_crowd=None if is_crowd is None else np.array(is_crowd),
        area=None if area is None else np.array(area, np.float32),
    )


def detections(*boxes, classes=None, scores=None):
    return ImageDetections(
        boxes=np.array(boxes, np.float32).reshape(-1, 4),
        classes=np.array(classes if classes is not None else [0] * len(boxes), np.int32),
        scores=np.array(scores if scores is not None else [0.9] * len(boxes), np.float32),
    )


def evaluate(*images, names=("thing",), ids=None):
    evaluator = CocoEvaluator(dict(enumerate(names)))
    for index, (truth, found) in enumerate(images):
        image_id = str(index) if ids is None else ids[index]
        evaluator.add_image(image_id, groundtruth=truth, detections=found)
    return evaluator.result()


def numbers(metrics):
    return list(metrics.by_tag().values())


@pytest.mark.parametrize("ids", [["", "", "", ""], ["a", "a", "b", "b"], None])
def test_images_of_empty_or_equal_ids_stay_apart(ids):
    # C23: merged, one perfect image would be left.
    perfect, missed = (groundtruth(BOX), detections(BOX)), (groundtruth(BOX), detections())
    metrics = evaluate(perfect, perfect, missed, missed, ids=ids)
    assert metrics.ap == pytest.approx(0.505, abs=5e-4)
    assert metrics.ar100 == 0.5
    assert (metrics.num_images, metrics.num_groundtruth_boxes, metrics.num_detections) == (4, 4, 2)


def test_a_detection_in_an_image_without_objects_is_wrong():
    # C24: without the negative image it would be 1.0.
    metrics = evaluate(
        (groundtruth(BOX), detections(BOX, scores=[0.5])),
        (groundtruth(), detections(BOX, scores=[0.9])),
    )
    assert metrics.ap == pytest.approx(0.5)
    assert metrics.num_images == 2


def test_more_than_a_hundred_objects_are_not_cut_off():
    # C25: a hundred detections of each category count, but all objects do.
    boxes = [(0, 12 * i, 10, 12 * i + 10) for i in range(120)]
    metrics = evaluate((groundtruth(*boxes), detections(*boxes)))
    assert metrics.ap == pytest.approx(0.8317, abs=5e-5)
    assert metrics.ar100 == pytest.approx(0.8333, abs=5e-5)
    assert metrics.num_groundtruth_boxes == 120


def test_two_classes_that_are_both_found_are_perfect():
    # C26: with padding taken for boxes of a class it would be 0.51.
    truth = groundtruth(BOX, OTHER_BOX, classes=[0, 1])
    metrics = evaluate((truth, detections(BOX, OTHER_BOX, classes=[0, 1])), names=("a", "b"))
    assert (metrics.ap, metrics.ar100) == (AP_OF_ALL_101_RECALLS, 1.0)


def test_the_very_first_annotation_can_be_matched():
    # C27: with annotation id 0 it would be 0.0.
    assert evaluate((groundtruth(BOX), detections(BOX))).ap == AP_OF_ALL_101_RECALLS


def test_without_groundtruth_every_number_is_absent():
    metrics = evaluate((groundtruth(), detections(BOX)))
    assert numbers(metrics) == [None] * 12
    assert metrics.per_category[0].ap is None


def test_without_detections_numbers_are_zero_where_there_is_groundtruth():
    metrics = evaluate((groundtruth(BOX), detections()))
    assert (metrics.ap, metrics.ap50, metrics.ap75, metrics.ar100) == (0.0, 0.0, 0.0, 0.0)
    assert (metrics.ap_medium, metrics.ar_medium) == (0.0, 0.0)
    assert (metrics.ap_small, metrics.ap_large, metrics.ar_small) == (None, None, None)


def test_with_only_crowds_every_number_is_absent():
    metrics = evaluate((groundtruth(BOX, is_crowd=[True]), detections(BOX)))
    assert numbers(metrics) == [None] * 12


def test_a_category_without_groundtruth_does_not_count():
    # C28: the second class is detected, but nowhere in the ground truth.
    metrics = evaluate(
        (groundtruth(BOX), detections(BOX, OTHER_BOX, classes=[0, 1])), names=("a", "b")
    )
    assert metrics.ap == AP_OF_ALL_101_RECALLS
    assert [(c.class_index, c.name, c.ap) for c in metrics.per_category] == [
        (0, "a", AP_OF_ALL_101_RECALLS),
        (1, "b", None),
    ]


def test_a_box_found_as_another_class_is_not_found():
    metrics = evaluate((groundtruth(BOX), detections(BOX, classes=[1])), names=("a", "b"))
    assert metrics.ap == 0.0


def test_half_an_overlap_counts_at_the_lowest_threshold_only():
    # C29: intersection over union is 0.5 exactly.
    metrics = evaluate((groundtruth((0, 0, 100, 100)), detections((0, 0, 50, 100))))
    assert metrics.ap == pytest.approx(0.1)
    assert metrics.ap50 == AP_OF_ALL_101_RECALLS
    assert metrics.ap75 == 0.0


def test_a_duplicate_of_lower_score_does_no_harm():
    metrics = evaluate((groundtruth(BOX), detections(BOX, BOX, scores=[0.9, 0.8])))
    assert metrics.ap == AP_OF_ALL_101_RECALLS


def test_a_detection_inside_a_crowd_is_neither_right_nor_wrong():
    truth = groundtruth(BOX, (100, 100, 300, 300), is_crowd=[False, True])
    metrics = evaluate((truth, detections((120, 120, 160, 160), BOX, scores=[0.9, 0.8])))
    assert metrics.ap == AP_OF_ALL_101_RECALLS


def test_size_is_the_area_of_the_record_where_it_has_one():
    # The box has 50 x 50 = 2500 square pixels: medium. The record says less than 32 x 32.
    found = detections(BOX)
    assert evaluate((groundtruth(BOX), found)).ap_small is None
    assert evaluate((groundtruth(BOX, area=[0.0]), found)).ap_small is None
    metrics = evaluate((groundtruth(BOX, area=[900.0]), found))
    assert metrics.ap_small == AP_OF_ALL_101_RECALLS
    assert metrics.ap_medium is None


def test_classes_of_no_category_are_left_out():
    metrics = evaluate(
        (groundtruth(BOX, OTHER_BOX, classes=[0, 7]), detections(BOX, OTHER_BOX, classes=[0, 7]))
    )
    assert metrics.ap == AP_OF_ALL_101_RECALLS
    assert (metrics.num_groundtruth_boxes, metrics.num_detections) == (1, 1)


def test_the_result_can_be_asked_for_again_after_more_images():
    evaluator = CocoEvaluator({0: "thing"})
    evaluator.add_image("a", groundtruth=groundtruth(BOX), detections=detections(BOX))
    first = evaluator.result()
    assert evaluator.result() == first
    evaluator.add_image("b", groundtruth=groundtruth(BOX), detections=detections())
    assert evaluator.result().ar100 == 0.5


def test_equal_scores_are_ranked_by_image_and_not_by_the_order_of_reading():
    right, wrong = (groundtruth(BOX), detections(BOX)), (groundtruth(), detections(BOX))
    forth = evaluate(right, wrong, ids=["a", "b"])
    back = evaluate(wrong, right, ids=["b", "a"])
    assert forth == back
    assert forth.ap == AP_OF_ALL_101_RECALLS
    assert evaluate(wrong, right, ids=["a", "b"]).ap == pytest.approx(0.5)


def test_nothing_is_printed(capsys):
    evaluate((groundtruth(BOX), detections(BOX)))
    assert capsys.readouterr() == ("", "")


def test_no_image_is_an_error():
    with pytest.raises(DataError, match="the evaluation set is empty"):
        CocoEvaluator({0: "thing"}).result()


def test_no_category_is_an_error():
    with pytest.raises(ValueError, match="at least one category"):
        CocoEvaluator({})


@pytest.mark.parametrize(
    ("truth", "message"),
    [
        (groundtruth((60, 10, 10, 60)), r"inverted box \(60, 10, 10, 60\)"),
        (groundtruth((10, 10, np.nan, 60)), r"box \(10, 10, nan, 60\) is not finite"),
        (groundtruth(BOX, classes=[0, 0]), r"2 classes, but boxes of shape \(1, 4\)"),
        (groundtruth(BOX, area=[1.0, 2.0]), r"1 classes, but area of shape \(2,\)"),
        (groundtruth(BOX, is_crowd=[]), r"1 classes, but is_crowd of shape \(0,\)"),
    ],
)
def test_groundtruth_that_is_no_set_of_boxes_is_named_with_its_image(truth, message):
    evaluator = CocoEvaluator({0: "thing"})
    with pytest.raises(DataError, match=f"ground truth of image 'x.jpg': .*{message}"):
        evaluator.add_image("x.jpg", groundtruth=truth, detections=detections())


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (detections((10, 10, np.inf, 60)), r"box \(10, 10, inf, 60\) is not finite"),
        (detections(BOX, scores=[np.nan]), "a score is not finite"),
        (detections(BOX, scores=[]), r"1 classes, but scores of shape \(0,\)"),
    ],
)
def test_detections_that_are_not_numbers_are_refused(found, message):
    evaluator = CocoEvaluator({0: "thing"})
    with pytest.raises(ValueError, match=message):
        evaluator.add_image("x.jpg", groundtruth=groundtruth(BOX), detections=found)
    with pytest.raises(DataError, match="empty"):
        evaluator.result()


def test_pixels_are_not_rounded():
    boxes = absolute_boxes(np.array([[0.1, 0.2, 0.5, 1.0]], np.float32), size=(333, 777))
    np.testing.assert_allclose(boxes, [[33.3, 155.4, 166.5, 777.0]], rtol=1e-6)
    assert boxes.dtype == np.float64
