"""Optimizers on TensorFlow's own update kernels, with slots under their TF1 names.

Keras' optimizers are not used. Their state is a numbered list, which a changed schedule shifts, so
that a resumed run breaks; they keep the learning rate in a checkpointed variable; and two of them
compute something else than the configs were tuned for: Keras' momentum buffers hold
``learning_rate * gradient``, and its RMSProp starts its mean square at zero instead of one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import tensorflow as tf

from tandem.models.variables import average_name


class Optimizer(ABC):
    """Updates ``variables`` from their gradients; owns one variable per variable and slot.

    Args:
        variables: what to update, by the name that their slots are saved under.
    """

    slot_initial_values: ClassVar[Mapping[str, float]]
    """Slot name, as TF1 appends it to the variable's name, to its initial value."""

    def __init__(self, variables: Mapping[str, tf.Variable]) -> None:
        self.variables = dict(variables)
        self._slots = {
            name: {
                slot: tf.Variable(tf.fill(variable.shape, value), trainable=False, name=slot)
                for slot, value in self.slot_initial_values.items()
            }
            for name, variable in self.variables.items()
        }

    @property
    def slot_tensors(self) -> dict[str, tf.Variable]:
        """Every slot variable under ``<variable>/<slot>``."""
        return {
            f"{name}/{slot}": variable
            for name, slots in self._slots.items()
            for slot, variable in slots.items()
        }

    def apply(
        self, gradients: Sequence[tf.Tensor], *, learning_rate: tf.Tensor, step: tf.Tensor
    ) -> None:
        """Takes one step.

        Args:
            gradients: one per variable, in the order of ``variables``.
            learning_rate: [] float32.
            step: [] int64, finished steps before this one.
        """
        for (name, variable), gradient in zip(self.variables.items(), gradients, strict=True):
            self._update(variable, gradient, self._slots[name], learning_rate, step)

    @abstractmethod
    def _update(
        self,
        variable: tf.Variable,
        gradient: tf.Tensor,
        slots: Mapping[str, tf.Variable],
        learning_rate: tf.Tensor,
        step: tf.Tensor,
    ) -> None: ...


class Momentum(Optimizer):
    """``a = momentum * a + g; w -= learning_rate * a``."""

    slot_initial_values: ClassVar[Mapping[str, float]] = {"Momentum": 0.0}

    def __init__(self, variables: Mapping[str, tf.Variable], *, momentum: float) -> None:
        super().__init__(variables)
        self.momentum = momentum

    def _update(
        self,
        variable: tf.Variable,
        gradient: tf.Tensor,
        slots: Mapping[str, tf.Variable],
        learning_rate: tf.Tensor,
        step: tf.Tensor,
    ) -> None:
        tf.raw_ops.ResourceApplyMomentum(
            var=variable.handle,
            accum=slots["Momentum"].handle,
            lr=learning_rate,
            grad=gradient,
            momentum=self.momentum,
        )


class RmsProp(Optimizer):
    """``s = decay * s + (1 - decay) * g²; m = momentum * m + lr * g / sqrt(s + epsilon); w -= m``.

    Reference: Hinton, Coursera lecture 6e; the momentum form is TensorFlow's.
    """

    slot_initial_values: ClassVar[Mapping[str, float]] = {"RMSProp": 1.0, "RMSProp_1": 0.0}

    def __init__(
        self,
        variables: Mapping[str, tf.Variable],
        *,
        momentum: float,
        decay: float,
        epsilon: float,
    ) -> None:
        super().__init__(variables)
        self.momentum = momentum
        self.decay = decay
        self.epsilon = epsilon

    def _update(
        self,
        variable: tf.Variable,
        gradient: tf.Tensor,
        slots: Mapping[str, tf.Variable],
        learning_rate: tf.Tensor,
        step: tf.Tensor,
    ) -> None:
        tf.raw_ops.ResourceApplyRMSProp(
            var=variable.handle,
            ms=slots["RMSProp"].handle,
            mom=slots["RMSProp_1"].handle,
            lr=learning_rate,
            rho=self.decay,
            momentum=self.momentum,
            epsilon=self.epsilon,
            grad=gradient,
        )


class Adam(Optimizer):
    """Adam, https://arxiv.org/abs/1412.6980, with its bias correction from the step count."""

    slot_initial_values: ClassVar[Mapping[str, float]] = {"Adam": 0.0, "Adam_1": 0.0}

    def __init__(
        self,
        variables: Mapping[str, tf.Variable],
        *,
        epsilon: float,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
    ) -> None:
        super().__init__(variables)
        self.epsilon = epsilon
        self.beta_1 = beta_1
        self.beta_2 = beta_2

    def _update(
        self,
        variable: tf.Variable,
        gradient: tf.Tensor,
        slots: Mapping[str, tf.Variable],
        learning_rate: tf.Tensor,
        step: tf.Tensor,
    ) -> None:
        time = tf.cast(step + 1, tf.float32)
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=slots["Adam"].handle,
            v=slots["Adam_1"].handle,
            beta1_power=tf.pow(self.beta_1, time),
            beta2_power=tf.pow(self.beta_2, time),
            lr=learning_rate,
            beta1=self.beta_1,
            beta2=self.beta_2,
            epsilon=self.epsilon,
            grad=gradient,
        )


@dataclass(frozen=True)
class MovingAverages:
    """Exponential moving averages of weights, under ``<variable>/ExponentialMovingAverage``.

    The first update copies the weights; afterwards ``average = decay * average + (1 - decay) * w``.
    """

    variables: Mapping[str, tf.Variable]
    averages: Mapping[str, tf.Variable]
    decay: float

    @classmethod
    def of(cls, variables: Mapping[str, tf.Variable], *, decay: float) -> MovingAverages:
        """Averages that start as copies of ``variables``."""
        averages = {
            name: tf.Variable(variable, trainable=False, name="ExponentialMovingAverage")
            for name, variable in variables.items()
        }
        return cls(variables, averages, decay)

    @property
    def tensors(self) -> dict[str, tf.Variable]:
        """Every average under the name that TF1 saves it by."""
        return {average_name(name): average for name, average in self.averages.items()}

    def update(self, step: tf.Tensor) -> None:
        """Moves the averages after a step was applied; ``step`` [] int64 counts those before it."""
        decay = tf.where(step == 0, 0.0, self.decay)
        for name, average in self.averages.items():
            average.assign(decay * average + (1.0 - decay) * self.variables[name])
