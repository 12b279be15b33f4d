"""Reads checkpoints by content: TensorFlow's V1 (one file) and V2 (index and data) formats.

Whether a checkpoint is name-based (TF1) or object-based (TF2) is seen by the object graph that the
latter carries, never by what a config calls it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from tandem.errors import FineTuneError

OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"


@dataclass(frozen=True)
class TensorBundle:
    """An open checkpoint.

    Attributes:
        prefix: path without ``.index``; of a V1 checkpoint the file itself.
        shapes: shape of every tensor by name.
        file_format: "V1" or "V2".
    """

    prefix: str
    shapes: Mapping[str, tuple[int, ...]]
    file_format: str
    _reader: Any

    @property
    def is_object_based(self) -> bool:
        """Written by ``tf.train.Checkpoint``: keys are paths of an object graph, not names."""
        return OBJECT_GRAPH in self.shapes

    def read(self, name: str) -> np.ndarray:
        """One tensor's values.

        Raises:
            FineTuneError: the data are damaged or a data file is missing.
        """
        try:
            return np.asarray(self._reader.get_tensor(name))
        except (tf.errors.OpError, RuntimeError, IndexError) as error:
            raise FineTuneError(
                f"checkpoint {self.prefix}: tensor {name!r} can't be read: {_first_line(error)}. "
                f"Its data files are damaged or incomplete; copy all of {self.prefix}.* again."
            ) from error


def open_bundle(prefix: str | Path) -> TensorBundle:
    """Open a checkpoint and list its tensors.

    Raises:
        FineTuneError: no checkpoint is there, or its index is damaged.
    """
    prefix = str(prefix)
    file_format = _file_format(prefix)
    try:
        reader = tf.train.load_checkpoint(prefix)
        shapes = reader.get_variable_to_shape_map()
    except (tf.errors.OpError, ValueError, RuntimeError) as error:
        raise FineTuneError(
            f"checkpoint {prefix} can't be opened: {_first_line(error)}. "
            "Its index is damaged or it is no TensorFlow checkpoint; copy it again."
        ) from error
    shapes = {name: tuple(shape) for name, shape in sorted(shapes.items())}
    return TensorBundle(prefix=prefix, shapes=shapes, file_format=file_format, _reader=reader)


def _file_format(prefix: str) -> str:
    if Path(f"{prefix}.index").is_file():
        return "V2"
    if Path(prefix).is_file():
        return "V1"
    folder = Path(prefix).parent
    found = sorted({str(path.with_suffix("")) for path in folder.glob("*.index")})
    there = f"; that folder has {', '.join(found)}" if found else ""
    raise FineTuneError(
        f"no checkpoint at {prefix}: expected {prefix}.index beside {prefix}.data-*, or one V1 "
        f"file of that name{there}. Mend train_config.fine_tune_checkpoint."
    )


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n", maxsplit=1)[0]
