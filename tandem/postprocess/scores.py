"""Class scores from logits."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import tensorflow as tf


class ScoreFunction(enum.Enum):
    """What turns logits into scores."""

    IDENTITY = "identity"
    SIGMOID = "sigmoid"
    SOFTMAX = "softmax"


@dataclass(frozen=True)
class ScoreConverter:
    """A score function after a division by a temperature."""

    function: ScoreFunction
    logit_scale: float = 1.0
    """Logits are divided by it first; above 1 makes scores less extreme."""

    def __call__(self, logits: tf.Tensor) -> tf.Tensor:
        """Scores of the same shape and type as the logits [..., num_columns] float32."""
        scaled = logits / self.logit_scale
        if self.function is ScoreFunction.SIGMOID:
            return tf.sigmoid(scaled)
        if self.function is ScoreFunction.SOFTMAX:
            return tf.nn.softmax(scaled)
        return scaled
