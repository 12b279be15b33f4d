"""A model's variables under the names of the original's TF1 checkpoints."""

from __future__ import annotations

import keras
import tensorflow as tf


def checkpoint_tensors(model: keras.layers.Layer) -> dict[str, tf.Variable]:
    """Every weight of the model, moving statistics included, by TF1 name, sorted.

    ``FeatureExtractor/MobileDetCPU/Conv/weights`` and so on; an optimizer's slots go beside them
    as ``<name>/Momentum``, the step as ``global_step``.
    """
    tensors = {weight.path: weight.value for weight in model.weights}
    assert len(tensors) == len(model.weights), "two weights of one name"
    return dict(sorted(tensors.items()))


def average_name(name: str) -> str:
    """What a variable's moving average is saved as."""
    return f"{name}/ExponentialMovingAverage"
