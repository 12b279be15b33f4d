"""Tables for people: COCO numbers by checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.table import Table
from rich.text import Text

from services.ctl.streams import escaped

COLUMNS = {
    "AP": "DetectionBoxes_Precision/mAP",
    "AP50": "DetectionBoxes_Precision/mAP@.50IOU",
    "AP75": "DetectionBoxes_Precision/mAP@.75IOU",
    "APs": "DetectionBoxes_Precision/mAP (small)",
    "APm": "DetectionBoxes_Precision/mAP (medium)",
    "APl": "DetectionBoxes_Precision/mAP (large)",
    "AR1": "DetectionBoxes_Recall/AR@1",
    "AR10": "DetectionBoxes_Recall/AR@10",
    "AR100": "DetectionBoxes_Recall/AR@100",
    "ARs": "DetectionBoxes_Recall/AR@100 (small)",
    "ARm": "DetectionBoxes_Recall/AR@100 (medium)",
    "ARl": "DetectionBoxes_Recall/AR@100 (large)",
}
"""Column heading, as COCO abbreviates (s, m, l: small, medium, large objects), to ledger name."""

_SHORT = ("AP", "AP50", "AP75", "AR1", "AR10", "AR100")


def short(value: float | None) -> str:
    """Three digits, or a dash for what is unknown or has no ground truth."""
    return "-" if value is None else f"{value:.3f}"


def metrics_table(
    rows: Sequence[tuple[int | str, Mapping[str, float | None]]],
    *,
    full: bool = True,
    first: str = "step",
) -> Table:
    """One row per checkpoint: its step and its COCO numbers, the best AP in bold.

    Args:
        rows: step and metrics by name.
        full: all twelve numbers, else the six that fit a narrow terminal.
        first: heading of the first column.
    """
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column(first, justify="right")
    names = COLUMNS if full else {heading: COLUMNS[heading] for heading in _SHORT}
    for heading in names:
        table.add_column(heading, justify="right")
    best = max((metrics.get(COLUMNS["AP"]) or 0.0 for _, metrics in rows), default=0.0)
    for step, metrics in rows:
        is_best = best > 0 and metrics.get(COLUMNS["AP"]) == best
        table.add_row(
            Text(escaped(str(step))),
            *(short(metrics.get(name)) for name in names.values()),
            style="bold green" if is_best else "",
        )
    return table
