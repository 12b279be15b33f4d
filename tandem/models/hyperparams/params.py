"""What a convolution block is made with: initialiser, regulariser, activation, batch norm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import keras
import tensorflow as tf

Activation: TypeAlias = Callable[[tf.Tensor], tf.Tensor]

InitializerFactory: TypeAlias = Callable[[], keras.initializers.Initializer]
"""Makes a new initialiser for every variable: one Keras initialiser gives the same values to
every variable of the same shape."""


@dataclass(frozen=True)
class BatchNormParams:
    """Settings of one batch norm.

    Attributes:
        decay: share of the old moving statistics kept at each update.
        epsilon: added to the variance.
        scale: learn a factor (gamma).
        center: learn an offset (beta).
        frozen: normalise by the moving statistics in training too, and leave them as they are.
    """

    decay: float
    epsilon: float
    scale: bool = True
    center: bool = True
    frozen: bool = False


@dataclass(frozen=True)
class ConvParams:
    """Settings shared by the convolutions of one part of a model.

    Attributes:
        initializer: makes the kernel's initialiser.
        regularizer: of the kernel; biases and batch norm carry none, as in the original.
        activation: applied last; None is the identity.
        batch_norm: None gives the convolution a bias instead.
    """

    initializer: InitializerFactory
    regularizer: keras.regularizers.Regularizer | None
    activation: Activation | None
    batch_norm: BatchNormParams | None


class L2(keras.regularizers.Regularizer):
    """``weight / 2`` times the sum of squares: TF-Slim's convention, half of Keras's."""

    def __init__(self, weight: float) -> None:
        self.weight = weight

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        """[] of the type of the kernel x."""
        return self.weight * tf.nn.l2_loss(x)


class L1(keras.regularizers.Regularizer):
    """``weight`` times the sum of absolute values."""

    def __init__(self, weight: float) -> None:
        self.weight = weight

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        """[] of the type of the kernel x."""
        return self.weight * tf.reduce_sum(tf.abs(x))


def hard_swish(x: tf.Tensor) -> tf.Tensor:
    """``x * relu6(x + 3) / 6`` (MobileNet V3, arXiv:1905.02244)."""
    return x * tf.nn.relu6(x + 3.0) * (1.0 / 6.0)
