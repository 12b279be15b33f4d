"""Compares the weights made from names with the checkpoints that some cases carry."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from services.ctl.golden.cases import GoldenCase
from services.ctl.golden.comparisons import Comparison
from services.ctl.golden.weights import weight_values
from tandem.training.tensor_bundles import open_bundle


def compare_checkpoints(case: GoldenCase) -> Iterator[Comparison]:
    """One comparison per name-based checkpoint in the folder: bit-equal weights."""
    prefixes = [path.with_suffix("") for path in case.folder.glob("model.ckpt-*.index")]
    prefixes += case.folder.glob("v1_format/model.ckpt-*")
    for prefix in sorted(prefixes):
        bundle = open_bundle(prefix)
        different = [
            name
            for name, shape in case.shapes.items()
            if not np.array_equal(bundle.read(name), weight_values(name, shape))
        ]
        note = f"{bundle.file_format} checkpoint, {len(case.shapes)} weights bit-equal"
        if different:
            note = f"{bundle.file_format} checkpoint: first {different[0]}"
        yield Comparison("weights", float(len(different)), 0.0, note)
