"""Makes a golden case's weights from the names of its variables.

The original ran with these values and only its outputs are stored. Every variable's values come
from a generator seeded with its own name, by a distribution that its kind decides, so that signals
keep their size through the network.
"""

from __future__ import annotations

import re
import zlib

import numpy as np
import numpy.typing as npt

from tandem.models.ssd import SsdModel
from tandem.models.variables import checkpoint_tensors

FloatArray = npt.NDArray[np.float32]


def weight_values(name: str, shape: tuple[int, ...]) -> FloatArray:
    """The float32 values of a variable of a golden case."""
    generator = np.random.RandomState(zlib.crc32(name.encode()))
    leaf = name.lower().removesuffix(":0")
    if leaf.endswith(("moving_mean", "beta")):
        return _normal(generator, 0.0, 0.3, shape)
    if "moving_variance" in leaf:
        return _uniform(generator, 0.5, 1.5, shape)
    if leaf.endswith("gamma"):
        return _uniform(generator, 0.6, 1.4, shape)
    if leaf.endswith(("biases", "bias")):
        # Below zero for classes, so that scores are spread and not all near one half.
        return _normal(generator, -1.0 if _predicts_classes(name) else 0.0, 0.2, shape)
    if len(shape) < 2:
        return _uniform(generator, 0.5, 1.5, shape)
    return _normal(generator, 0.0, np.sqrt(1.0 / _fan_in(leaf, shape)), shape)


def _predicts_classes(name: str) -> bool:
    return re.search(r"class_?predict", name, re.IGNORECASE) is not None


def _fan_in(leaf: str, shape: tuple[int, ...]) -> int:
    if len(shape) == 4:
        return shape[0] * shape[1] * (1 if "depthwise" in leaf else shape[2])
    return shape[0] if len(shape) == 2 else 1


def _normal(
    generator: np.random.RandomState, mean: float, stddev: float, shape: tuple[int, ...]
) -> FloatArray:
    return generator.normal(mean, stddev, shape).astype(np.float32)


def _uniform(
    generator: np.random.RandomState, low: float, high: float, shape: tuple[int, ...]
) -> FloatArray:
    return generator.uniform(low, high, shape).astype(np.float32)


def assign_weights(model: SsdModel) -> None:
    """Gives every variable of a model its values."""
    for name, variable in checkpoint_tensors(model).items():
        values = weight_values(name, tuple(variable.shape))
        variable.assign(values.astype(variable.dtype.as_numpy_dtype))
