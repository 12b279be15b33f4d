"""Losses of class logits, one number per entry.

All take logits [..., num_columns] float32, targets of the same shape in [0, 1] and weights that
broadcast with it, and return the weighted loss per entry, same shape as the logits. An entry of
weight 0 gives exactly 0 and no gradient, whatever its logit and target hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import tensorflow as tf

# Keeps the slope of x**gamma finite at 0 for gamma < 1; far below any probability that matters.
_LEAST_MISS = 1e-30


class ClassificationLoss(Protocol):
    """Logits, targets and weights to losses per entry."""

    def __call__(self, logits: tf.Tensor, *, targets: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        """[..., num_columns] float32: weighted loss of each entry."""


@dataclass(frozen=True)
class SigmoidLoss:
    """Cross entropy of independent yes-or-no answers, one per column."""

    def __call__(self, logits: tf.Tensor, *, targets: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        """[..., num_columns] float32: weighted loss of each entry."""
        logits, targets = _without_masked(logits, targets, weights)
        return tf.nn.sigmoid_cross_entropy_with_logits(labels=targets, logits=logits) * weights


@dataclass(frozen=True)
class SigmoidFocalLoss:
    """Sigmoid cross entropy that fades for entries already right (Lin et al., arXiv 1708.02002)."""

    gamma: float = 2.0
    """Power of the missing probability; 0 is plain cross entropy."""
    alpha: float | None = None
    """Weight of positive targets, one minus it for negative ones; None weighs all alike."""

    def __call__(self, logits: tf.Tensor, *, targets: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        """[..., num_columns] float32: weighted loss of each entry."""
        logits, targets = _without_masked(logits, targets, weights)
        losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=targets, logits=logits)
        if self.gamma:
            # One minus the probability given to the target, without the subtraction from one that
            # would lose its digits: sigmoid(-x) is 1 - sigmoid(x).
            miss = targets * tf.sigmoid(-logits) + (1.0 - targets) * tf.sigmoid(logits)
            losses *= tf.pow(tf.maximum(miss, _LEAST_MISS), self.gamma)
        if self.alpha is not None:
            losses *= targets * self.alpha + (1.0 - targets) * (1.0 - self.alpha)
        return losses * weights


def _without_masked(
    logits: tf.Tensor, targets: tf.Tensor, weights: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Zeros where the weight is 0: a weight alone would turn NaN or infinity into NaN."""
    counts = weights != 0.0
    return tf.where(counts, logits, 0.0), tf.where(counts, targets, 0.0)
