"""Compares detections; those whose scores are nearly equal may stand in either order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from services.ctl.golden.comparisons import Comparison, compare_arrays
from tandem.postprocess.detections import Detections

DETECTIONS = 1e-3


def compare_detections(
    detections: Detections, arrays: Mapping[str, np.ndarray]
) -> Iterator[Comparison]:
    """Compares row by row, our rows brought into the original's order by anchor and class.

    Scores are compared after that too, so a row can only have moved among scores that are equal
    within the tolerance. A row that only one side has stays where it is, and differs.
    """
    if "det_num_detections" not in arrays:
        return
    ours = {
        "detection_boxes": detections.boxes.numpy(),
        "detection_classes": detections.classes.numpy(),
        "detection_scores": detections.scores.numpy(),
        "detection_multiclass_scores": detections.multiclass_scores.numpy(),
        "detection_anchor_indices": detections.anchor_indices.numpy(),
    }
    yield compare_arrays(
        "det_num_detections",
        detections.num_detections.numpy(),
        arrays["det_num_detections"],
        tolerance=0.0,
    )
    golden = {name: arrays[f"det_{name}"] for name in ours}
    order = np.stack(
        [_order(_keys(ours, i), _keys(golden, i)) for i in range(len(ours["detection_scores"]))]
    )
    moved = int(np.sum(order != np.arange(order.shape[1])))
    note = f"{moved} of {order.size} rows in another order" if moved else ""
    for name, values in ours.items():
        rows = order.reshape(order.shape + (1,) * (values.ndim - 2))
        aligned = np.take_along_axis(values, rows, axis=1)
        yield compare_arrays(f"det_{name}", aligned, golden[name], tolerance=DETECTIONS, note=note)


def _keys(detections: Mapping[str, np.ndarray], image: int) -> list[tuple[int, int]]:
    anchors = detections["detection_anchor_indices"][image]
    classes = detections["detection_classes"][image]
    return [(int(a), int(c)) for a, c in zip(anchors, classes, strict=True)]


def _order(ours: list[tuple[int, int]], golden: list[tuple[int, int]]) -> np.ndarray:
    """For each golden row the row of ours with the same key, else the same row."""
    where = {key: row for row, key in enumerate(ours)}
    return np.asarray([where.get(key, row) for row, key in enumerate(golden)])
