from dataclasses import replace

from tandem.evaluation.coco_metrics import TAGS, CategoryAp, CocoMetrics

METRICS = CocoMetrics(
    **{field: index / 100 for index, field in enumerate(TAGS)},
    per_category=(CategoryAp(0, "cat", 0.5), CategoryAp(3, "dog", None)),
    num_images=1,
    num_groundtruth_boxes=1,
    num_detections=1,
)


def test_tags_are_those_of_the_object_detection_api_in_the_order_of_pycocotools():
    assert list(METRICS.by_tag()) == [
        "DetectionBoxes_Precision/mAP",
        "DetectionBoxes_Precision/mAP@.50IOU",
        "DetectionBoxes_Precision/mAP@.75IOU",
        "DetectionBoxes_Precision/mAP (small)",
        "DetectionBoxes_Precision/mAP (medium)",
        "DetectionBoxes_Precision/mAP (large)",
        "DetectionBoxes_Recall/AR@1",
        "DetectionBoxes_Recall/AR@10",
        "DetectionBoxes_Recall/AR@100",
        "DetectionBoxes_Recall/AR@100 (small)",
        "DetectionBoxes_Recall/AR@100 (medium)",
        "DetectionBoxes_Recall/AR@100 (large)",
    ]
    assert list(METRICS.by_tag().values()) == [index / 100 for index in range(12)]


def test_categories_are_given_when_asked_for():
    added = dict(list(METRICS.by_tag(include_categories=True).items())[12:])
    assert added == {
        "DetectionBoxes_PerformanceByCategory/mAP/cat": 0.5,
        "DetectionBoxes_PerformanceByCategory/mAP/dog": None,
    }


def test_categories_of_one_name_do_not_overwrite_each_other():
    twins = (CategoryAp(0, "cat", 0.5), CategoryAp(3, "cat", 0.25))
    added = list(replace(METRICS, per_category=twins).by_tag(include_categories=True).items())[12:]
    assert added == [
        ("DetectionBoxes_PerformanceByCategory/mAP/cat (id 1)", 0.5),
        ("DetectionBoxes_PerformanceByCategory/mAP/cat (id 4)", 0.25),
    ]
