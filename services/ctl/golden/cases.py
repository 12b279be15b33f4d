"""Reads a golden case: a config, the original's variables, its inputs and outputs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tandem import fields
from tandem.config.pipeline import load_pipeline
from tandem.errors import InputError
from tandem.protos.pipeline_pb2 import TrainEvalPipelineConfig


@dataclass(frozen=True)
class GoldenCase:
    """One folder.

    Attributes:
        folder: where it lies.
        config: its pipeline.config.
        shapes: the original's model variables, optimizer slots and step excepted.
        arrays: everything in golden.npz.
    """

    folder: Path
    config: TrainEvalPipelineConfig
    shapes: Mapping[str, tuple[int, ...]]
    arrays: Mapping[str, np.ndarray]

    @property
    def groundtruth(self) -> dict[str, np.ndarray]:
        """The case's boxes by the names of ``tandem.fields``, padded to the most of any image."""
        count = sum(1 for name in self.arrays if name.startswith("gt_boxes_"))
        boxes = [self.arrays[f"gt_boxes_{i}"] for i in range(count)]
        classes = [self.arrays[f"gt_classes_onehot_{i}"].argmax(axis=-1) for i in range(count)]
        weights = [self.arrays[f"gt_weights_{i}"] for i in range(count)]
        return {
            fields.BOXES: _padded(boxes, np.float32),
            fields.CLASSES: _padded(classes, np.int32),
            fields.WEIGHTS: _padded(weights, np.float32),
            fields.NUM_BOXES: np.asarray([len(rows) for rows in boxes], np.int32),
        }


def load_case(folder: Path) -> GoldenCase:
    """Read a folder.

    Raises:
        InputError: it lacks a file, or a file is not what it should be.
    """
    for name in ("pipeline.config", "variables.json", "golden.npz"):
        if not (folder / name).is_file():
            raise InputError(
                f"{folder} is no golden case: it has no {name}; expected pipeline.config, "
                "variables.json and golden.npz"
            )
    try:
        rows = json.loads((folder / "variables.json").read_text())["variables"]
        with np.load(folder / "golden.npz") as stored:
            arrays = dict(stored)
        shapes = {row[0]: tuple(row[1]) for row in rows if isinstance(row, list)}
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise InputError(
            f"{folder}: variables.json or golden.npz can't be read: {error}"
        ) from error
    return GoldenCase(
        folder=folder,
        config=load_pipeline(str(folder / "pipeline.config")),
        shapes={name: shape for name, shape in shapes.items() if _is_weight(name)},
        arrays=arrays,
    )


def _is_weight(name: str) -> bool:
    return name != "global_step" and not name.endswith("/Momentum")


def _padded(rows: list[np.ndarray], dtype: type[np.generic]) -> np.ndarray:
    most = max(len(row) for row in rows)
    padding = [[(0, most - len(row))] + [(0, 0)] * (row.ndim - 1) for row in rows]
    return np.stack([np.pad(row, pad) for row, pad in zip(rows, padding, strict=True)]).astype(
        dtype
    )
