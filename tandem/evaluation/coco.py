"""COCO box evaluation: pycocotools behind a typed interface.

Three of its habits are kept away from callers. It prints. It merges images of equal id, so each
image gets an integer of its own here whatever its record says. And it takes annotation id 0 for "no
match", so ids start at 1.
"""

from __future__ import annotations

import contextlib
import io
import itertools
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from tandem.errors import DataError
from tandem.evaluation.coco_metrics import TAGS, CategoryAp, CocoMetrics

Annotation = dict[str, Any]


class ImageGroundtruth(NamedTuple):
    """What is in one image."""

    boxes: npt.NDArray[np.floating[Any]]
    """[num_boxes, 4] (ymin, xmin, ymax, xmax) in pixels of the original image."""
    classes: npt.NDArray[np.integer[Any]]
    """[num_boxes] zero-based."""
    is_crowd: npt.NDArray[np.bool_] | None = None
    """[num_boxes]: a region of many objects, neither to be found nor to be counted as wrong."""
    area: npt.NDArray[np.floating[Any]] | None = None
    """[num_boxes] square pixels of the original image; where it is not above 0 the box's own."""


class ImageDetections(NamedTuple):
    """What was found in one image."""

    boxes: npt.NDArray[np.floating[Any]]
    """[num_detections, 4] (ymin, xmin, ymax, xmax) in pixels of the original image."""
    classes: npt.NDArray[np.integer[Any]]
    """[num_detections] zero-based."""
    scores: npt.NDArray[np.floating[Any]]
    """[num_detections]; only their order matters."""


class _Image(NamedTuple):
    image_id: str
    groundtruth: list[Annotation]
    detections: list[Annotation]


class CocoEvaluator:
    """Collects images, then scores them all at once.

    Detections of equal score are ranked by image id, so the numbers don't depend on the order in
    which images of different ids are added.

    Args:
        category_names: zero-based class to name; other classes are left out of both sides.
    """

    def __init__(self, category_names: Mapping[int, str]) -> None:
        if not category_names:
            raise ValueError("an evaluation needs at least one category")
        self._names = dict(sorted(category_names.items()))
        self._images: list[_Image] = []

    def add_image(
        self, image_id: str, *, groundtruth: ImageGroundtruth, detections: ImageDetections
    ) -> None:
        """Adds one image, also one without any box.

        Args:
            image_id: names the image; may be empty or repeated, which merges nothing.
            groundtruth: without padding, and however many boxes there are.
            detections: without padding; the best 100 of each category count.

        Raises:
            DataError: the ground truth is no set of boxes; nothing was added.
            ValueError: the detections are none, for example not finite; nothing was added.
        """
        if problem := _groundtruth_problem(groundtruth):
            raise DataError(f"ground truth of image {image_id!r}: {problem}")
        if problem := _detections_problem(detections):
            raise ValueError(f"detections of image {image_id!r}: {problem}")
        self._images.append(
            _Image(
                image_id,
                self._known(_groundtruth_annotations(groundtruth)),
                self._known(_detection_annotations(detections)),
            )
        )

    def result(self) -> CocoMetrics:
        """Metrics of all images added so far.

        Raises:
            DataError: no image was added.
        """
        if not self._images:
            raise DataError("there is no image to evaluate: the evaluation set is empty")
        images = sorted(self._images, key=lambda image: image.image_id)
        groundtruth = _numbered([image.groundtruth for image in images])
        detections = _numbered([image.detections for image in images])
        with contextlib.redirect_stdout(io.StringIO()):
            evaluation = COCOeval(self._dataset(groundtruth), self._dataset(detections), "bbox")
            evaluation.evaluate()
            evaluation.accumulate()
            evaluation.summarize()
        numbers = (_present(value) for value in evaluation.stats)
        return CocoMetrics(
            **dict(zip(TAGS, numbers, strict=True)),
            per_category=self._per_category(evaluation),
            num_images=len(images),
            num_groundtruth_boxes=len(groundtruth),
            num_detections=len(detections),
        )

    def _known(self, annotations: list[Annotation]) -> list[Annotation]:
        return [a for a in annotations if a["category_id"] in self._names]

    def _dataset(self, annotations: list[Annotation]) -> Any:  # noqa: ANN401
        coco = COCO()
        coco.dataset = {
            "images": [{"id": number} for number in range(1, len(self._images) + 1)],
            "categories": [{"id": index, "name": name} for index, name in self._names.items()],
            "annotations": annotations,
        }
        coco.createIndex()
        return coco

    def _per_category(self, evaluation: Any) -> tuple[CategoryAp, ...]:  # noqa: ANN401
        # [iou, recall, category, area, max_detections]: all areas, 100 detections.
        precision = evaluation.eval["precision"][:, :, :, 0, -1]
        return tuple(
            CategoryAp(class_index, name, _mean_of_present(precision[:, :, position]))
            for position, (class_index, name) in enumerate(self._names.items())
        )


def absolute_boxes(
    boxes: npt.NDArray[np.floating[Any]], *, size: tuple[int, int]
) -> npt.NDArray[np.float64]:
    """Pixels from normalised boxes.

    Args:
        boxes: [num_boxes, 4] (ymin, xmin, ymax, xmax), normalised.
        size: (height, width) of the original image in pixels.

    Returns:
        [num_boxes, 4] float64, not rounded.
    """
    return np.asarray(boxes, np.float64) * np.array([*size, *size], np.float64)


def _groundtruth_annotations(image: ImageGroundtruth) -> list[Annotation]:
    number = len(image.classes)
    crowd = np.zeros(number) if image.is_crowd is None else image.is_crowd
    areas = np.zeros(number) if image.area is None else image.area
    annotations = _annotations(image.boxes, image.classes)
    for annotation, is_crowd, area in zip(annotations, crowd, areas, strict=True):
        annotation["iscrowd"] = int(is_crowd)
        if area > 0:
            annotation["area"] = float(area)
    return annotations


def _detection_annotations(image: ImageDetections) -> list[Annotation]:
    annotations = _annotations(image.boxes, image.classes)
    for annotation, score in zip(annotations, image.scores, strict=True):
        annotation["score"] = float(score)
    return annotations


def _annotations(
    boxes: npt.NDArray[np.floating[Any]], classes: npt.NDArray[np.integer[Any]]
) -> list[Annotation]:
    corners = np.asarray(boxes, np.float64).reshape(-1, 4)
    sizes = corners[:, 2:] - corners[:, :2]
    return [
        {
            "category_id": int(category),
            "bbox": [xmin, ymin, width, height],
            "area": width * height,
            "iscrowd": 0,
        }
        for category, (ymin, xmin), (height, width) in zip(
            classes, corners[:, :2].tolist(), sizes.tolist(), strict=True
        )
    ]


def _numbered(images: list[list[Annotation]]) -> list[Annotation]:
    """Copies with ids from 1 on; copies because pycocotools writes into what it is given."""
    numbers = itertools.count(1)
    return [
        {**annotation, "image_id": image, "id": next(numbers)}
        for image, annotations in enumerate(images, start=1)
        for annotation in annotations
    ]


def _present(value: float) -> float | None:
    """What is not measured, for want of ground truth, is -1 in pycocotools."""
    return None if value == -1 else float(value)


def _mean_of_present(precision: npt.NDArray[np.float64]) -> float | None:
    present = precision[precision > -1]
    return float(np.mean(present)) if present.size else None


def _groundtruth_problem(image: ImageGroundtruth) -> str | None:
    number = len(image.classes)
    others = {"is_crowd": image.is_crowd, "area": image.area}
    for name, values in others.items():
        if values is not None and np.shape(values) != (number,):
            return f"{number} classes, but {name} of shape {np.shape(values)}"
    if problem := _boxes_problem(image.boxes, number):
        return problem
    inverted = (image.boxes[:, :2] > image.boxes[:, 2:]).any(axis=1)
    if inverted.any():
        box = _shown(image.boxes[inverted.argmax()])
        return f"inverted box {box}; ymin <= ymax and xmin <= xmax expected"
    return None


def _detections_problem(image: ImageDetections) -> str | None:
    number = len(image.classes)
    if np.shape(image.scores) != (number,):
        return f"{number} classes, but scores of shape {np.shape(image.scores)}"
    if not np.isfinite(image.scores).all():
        return "a score is not finite"
    return _boxes_problem(image.boxes, number)


def _boxes_problem(boxes: npt.NDArray[np.floating[Any]], number: int) -> str | None:
    if np.shape(boxes) != (number, 4):
        return f"{number} classes, but boxes of shape {np.shape(boxes)}"
    broken = ~np.isfinite(boxes).all(axis=1)
    return f"box {_shown(boxes[broken.argmax()])} is not finite" if broken.any() else None


def _shown(box: npt.NDArray[np.floating[Any]]) -> str:
    return "(" + ", ".join(f"{value:g}" for value in box) + ")"
