"""Compares a model's variables with those that the original had."""

from __future__ import annotations

from services.ctl.golden.cases import GoldenCase
from services.ctl.golden.comparisons import Comparison
from tandem.models.ssd import SsdModel
from tandem.models.variables import checkpoint_tensors


def compare_variables(model: SsdModel, case: GoldenCase) -> Comparison:
    """Names and shapes; the difference counts variables that only one side has in that shape."""
    ours = {name: tuple(v.shape) for name, v in checkpoint_tensors(model).items()}
    golden = case.shapes
    different = sorted(n for n in ours.keys() | golden.keys() if ours.get(n) != golden.get(n))
    note = f"{len(golden)} names and shapes"
    if different:
        first = different[0]
        note = f"{first}: ours {ours.get(first)}, the original's {golden.get(first)}"
    return Comparison("variables", float(len(different)), 0.0, note)
