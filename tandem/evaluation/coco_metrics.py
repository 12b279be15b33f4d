"""The twelve numbers of a COCO box evaluation, and the names under which charts know them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

TAGS = {
    "ap": "DetectionBoxes_Precision/mAP",
    "ap50": "DetectionBoxes_Precision/mAP@.50IOU",
    "ap75": "DetectionBoxes_Precision/mAP@.75IOU",
    "ap_small": "DetectionBoxes_Precision/mAP (small)",
    "ap_medium": "DetectionBoxes_Precision/mAP (medium)",
    "ap_large": "DetectionBoxes_Precision/mAP (large)",
    "ar1": "DetectionBoxes_Recall/AR@1",
    "ar10": "DetectionBoxes_Recall/AR@10",
    "ar100": "DetectionBoxes_Recall/AR@100",
    "ar_small": "DetectionBoxes_Recall/AR@100 (small)",
    "ar_medium": "DetectionBoxes_Recall/AR@100 (medium)",
    "ar_large": "DetectionBoxes_Recall/AR@100 (large)",
}
"""Field of `CocoMetrics` to the Object Detection API's TensorBoard tag, in pycocotools' order."""

_CATEGORY_TAG = "DetectionBoxes_PerformanceByCategory/mAP/"


class CategoryAp(NamedTuple):
    """Average precision of one category."""

    class_index: int
    """Zero-based: label-map id minus one."""
    name: str
    ap: float | None
    """None when the category has no ground truth."""


@dataclass(frozen=True)
class CocoMetrics:
    """Average precision and recall as pycocotools computes them; None without any ground truth.

    Precision is averaged over the IoU thresholds 0.50, 0.55 ... 0.95 unless the name has one, over
    101 recalls and over categories. Small is an area up to 32x32 pixels of the original image,
    large from 96x96, medium between.
    """

    ap: float | None
    ap50: float | None
    ap75: float | None
    ap_small: float | None
    ap_medium: float | None
    ap_large: float | None
    ar1: float | None
    """Recall with the best detection of each image and category; `ar10`, `ar100` alike."""
    ar10: float | None
    ar100: float | None
    ar_small: float | None
    ar_medium: float | None
    ar_large: float | None
    per_category: tuple[CategoryAp, ...]
    num_images: int
    """Images scored, those without ground truth included."""
    num_groundtruth_boxes: int
    """Boxes scored, crowds included; boxes of no known category are left out."""
    num_detections: int
    """Detections handed in, those of no known category left out."""

    def by_tag(self, *, include_categories: bool = False) -> dict[str, float | None]:
        """Every number by its TensorBoard tag; None is absent and belongs on no chart.

        Args:
            include_categories: with the average precision of each category, as
                `eval_config.include_metrics_per_category` asks for.
        """
        numbers: dict[str, float | None] = {tag: getattr(self, f) for f, tag in TAGS.items()}
        if include_categories:
            numbers |= self._category_numbers()
        return numbers

    def _category_numbers(self) -> dict[str, float | None]:
        uses = Counter(category.name for category in self.per_category)
        return {
            # Two categories may bear one name; neither may overwrite the other.
            _CATEGORY_TAG
            + (c.name if uses[c.name] == 1 else f"{c.name} (id {c.class_index + 1})"): (c.ap)
            for c in self.per_category
        }
