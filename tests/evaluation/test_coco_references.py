"""The evaluator against pycocotools' published numbers and the original evaluator's."""

import json

import numpy as np
import pytest
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from tandem.evaluation.coco import CocoEvaluator, ImageDetections, ImageGroundtruth

DIFFERENT_ON_PURPOSE = {
    "duplicate_ann_ids.json": "each box counts here, whatever its id in the file",
    "zero_area_nonzero_bbox.json": "an area of 0 means the record has none: the box's is taken",
}


def corners(annotations):
    boxes = np.array([a["bbox"] for a in annotations], np.float64).reshape(-1, 4)
    return np.stack(
        [boxes[:, 1], boxes[:, 0], boxes[:, 1] + boxes[:, 3], boxes[:, 0] + boxes[:, 2]], axis=-1
    )


def column(annotations, key, dtype, default=None):
    values = [a[key] if default is None else a.get(key, default) for a in annotations]
    return np.array(values, dtype)


def evaluate_files(truth, found):
    evaluator = CocoEvaluator({c["id"] - 1: c["name"] for c in truth["categories"]})
    for image in truth["images"]:
        boxes, predicted = (
            [a for a in annotations if a["image_id"] == image["id"]]
            for annotations in (truth["annotations"], found)
        )
        evaluator.add_image(
            f"{image['id']:012}",  # pycocotools goes through images in the order of their numbers
            groundtruth=ImageGroundtruth(
                corners(boxes),
                column(boxes, "category_id", int) - 1,
                column(boxes, "iscrowd", bool, default=0),
                column(boxes, "area", float, default=0),
            ),
            detections=ImageDetections(
                corners(predicted),
                column(predicted, "category_id", int) - 1,
                column(predicted, "score", float),
            ),
        )
    return evaluator.result()


def with_absent(metrics):
    return [-1.0 if value is None else value for value in metrics.by_tag().values()]


@pytest.fixture(scope="session")
def expected(shared):
    return json.loads((shared / "realdata/coco/expected_pycocotools.json").read_text())


def test_adversarial_sets_equal_pycocotools_to_the_bit(shared, expected):
    compared = 0
    for name, reference in expected["hotcoco_adversarial"].items():
        if name in DIFFERENT_ON_PURPOSE or not isinstance(reference["bbox"], list):
            continue
        content = json.loads((shared / "realdata/coco/hotcoco_adversarial" / name).read_text())
        metrics = evaluate_files(content, content["detections"])
        assert with_absent(metrics) == reference["bbox"], name
        compared += 1
    assert compared > 30


def test_a_set_without_any_box_has_no_numbers(shared):
    # Here pycocotools itself ends in an IndexError.
    path = shared / "realdata/coco/hotcoco_adversarial/empty_eval.json"
    content = json.loads(path.read_text())
    assert with_absent(evaluate_files(content, content["detections"])) == [-1.0] * 12


def test_boxes_that_share_an_id_are_all_counted(shared):
    path = shared / "realdata/coco/hotcoco_adversarial/duplicate_ann_ids.json"
    content = json.loads(path.read_text())
    metrics = evaluate_files(content, content["detections"])
    for number, annotation in enumerate(content["annotations"], start=1):
        annotation["id"] = number
    assert with_absent(metrics) == run_pycocotools(content, content["detections"])


@pytest.mark.parametrize(
    ("name", "truth", "found"),
    [
        ("dataset/gt_dataset/bbox", "dataset/gt_dataset", "dataset/dt_dataset"),
        ("data/gt_cat_dog/bbox", "data/gt_cat_dog", "data/dt_cat_dog"),
    ],
)
def test_small_sets_equal_pycocotools_to_the_bit(name, truth, found, shared, expected):
    folder = shared / "realdata/coco/faster_coco_eval"
    truth, found = (json.loads((folder / f"{n}.json").read_text()) for n in (truth, found))
    assert with_absent(evaluate_files(truth, found)) == expected[name]


def run_pycocotools(truth, found):
    """Straight through its own doors, with boxes that corners can express exactly."""

    def exact(annotations):
        boxes = corners(annotations)
        sizes = boxes[:, 2:] - boxes[:, :2]
        return [
            {**a, "bbox": [box[1], box[0], size[1], size[0]]}
            for a, box, size in zip(annotations, boxes.tolist(), sizes.tolist(), strict=True)
        ]

    coco = COCO()
    coco.dataset = {**truth, "annotations": exact(truth["annotations"])}
    coco.createIndex()
    evaluation = COCOeval(coco, coco.loadRes(exact(found)), "bbox")
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
    return evaluation.stats.tolist()


def test_a_hundred_real_images_equal_pycocotools_to_the_bit(shared, expected):
    folder = shared / "realdata/coco/faster_coco_eval/cocoapi"
    truth = json.loads((folder / "instances_val2014_100.json").read_text())
    found = json.loads((folder / "instances_val2014_fakebbox100_results.json").read_text())
    numbers = with_absent(evaluate_files(truth, found))
    assert numbers == run_pycocotools(truth, found)
    assert numbers == expected["instances_val2014_100/bbox"]


CATEGORIES = {0: "red", 1: "green", 2: "blue", 3: "rare thing"}


@pytest.mark.parametrize(
    ("name", "has_crowd", "has_area", "names"),
    [
        ("full", True, True, CATEGORIES),
        ("default", True, True, CATEGORIES),
        ("per_category", True, True, CATEGORIES),
        ("no_crowd_no_area", False, False, CATEGORIES),
        ("crowd_no_area", True, False, CATEGORIES),
        ("subset_of_categories", True, True, {0: "red", 1: "green"}),
    ],
)
def test_numbers_equal_those_of_the_original_evaluator(
    name, has_crowd, has_area, names, components
):
    arrays = components.arrays
    evaluator = CocoEvaluator(names)
    truths = zip(arrays["coco/gt_offsets"], arrays["coco/gt_offsets"][1:], strict=False)
    founds = zip(arrays["coco/det_offsets"], arrays["coco/det_offsets"][1:], strict=False)
    for image, (truth, found) in enumerate(zip(truths, founds, strict=True)):
        truth, found = slice(*truth), slice(*found)
        evaluator.add_image(
            f"img{image}",
            groundtruth=ImageGroundtruth(
                arrays["coco/gt_boxes"][truth],
                arrays["coco/gt_classes"][truth] - 1,
                arrays["coco/gt_crowd"][truth] if has_crowd else None,
                arrays["coco/gt_area"][truth] if has_area else None,
            ),
            detections=ImageDetections(
                arrays["coco/det_boxes"][found],
                arrays["coco/det_classes"][found] - 1,
                arrays["coco/det_scores"][found],
            ),
        )
    metrics = evaluator.result()
    numbers = metrics.by_tag(include_categories=True)
    reference = components.cases[f"coco_box/{name}"]["metrics"]
    shared_tags = numbers.keys() & reference.keys()
    assert len(shared_tags) >= 12
    assert all(tag in numbers for tag in reference if "PerformanceByCategory" in tag)
    for tag in shared_tags:
        assert numbers[tag] == pytest.approx(reference[tag], abs=1e-12), tag
