"""How far two arrays are apart, and whether that is too far."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Comparison:
    """One output of ours beside the original's.

    Attributes:
        name: of the output.
        difference: the largest, relative to the range of the original's values where the name
            doesn't say otherwise; infinite where the two can't be compared.
        tolerance: largest difference that still passes.
        note: what was compared, or why it can't be.
    """

    name: str
    difference: float
    tolerance: float
    note: str = ""

    @property
    def equal(self) -> bool:
        """Within tolerance; NaN is not."""
        return self.difference <= self.tolerance

    def __str__(self) -> str:
        verdict = "ok" if self.equal else "DIFFERS"
        note = f"  {self.note}" if self.note else ""
        return f"{self.name:<34} {self.difference:9.2e}  of {self.tolerance:<7.2g} {verdict}{note}"


def compare_arrays(
    name: str, ours: np.ndarray, golden: np.ndarray, *, tolerance: float, note: str = ""
) -> Comparison:
    """Largest difference relative to the range of the golden values."""
    ours, golden = np.asarray(ours, np.float64), np.asarray(golden, np.float64)
    if ours.shape != golden.shape:
        note = f"shape {list(ours.shape)}, the original's is {list(golden.shape)}"
        return Comparison(name, float("inf"), tolerance, note)
    if not golden.size:
        return Comparison(name, 0.0, tolerance, "empty")
    difference = float(np.max(np.abs(ours - golden)))
    return Comparison(name, difference / _range(golden), tolerance, note)


def compare_all(
    name: str, pairs: dict[str, tuple[np.ndarray, np.ndarray]], *, tolerance: float
) -> Comparison:
    """The worst of many arrays, each relative to its own range."""
    rows = [compare_arrays(key, *pair, tolerance=tolerance) for key, pair in pairs.items()]
    # NaN must not lose against a number.
    worst = max(rows, key=lambda row: np.nan_to_num(row.difference, nan=np.inf))
    note = f"worst of {len(rows)}: {worst.name}" + (f", {worst.note}" if worst.note else "")
    return Comparison(name, worst.difference, tolerance, note)


def _range(values: np.ndarray) -> float:
    """Largest minus smallest; of a single value, or of equal ones, their size."""
    spread = float(np.ptp(values))
    return spread or float(np.max(np.abs(values))) or 1.0
