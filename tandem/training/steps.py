"""One optimisation step: loss, gradients, update."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import tensorflow as tf

from tandem import fields
from tandem.models.ssd import SsdModel
from tandem.training.states import TrainingState


class StepResult(NamedTuple):
    """What a step measured; all [] float32 but ``finite``.

    Attributes:
        localization_loss: weighted and normalised, as it enters the total.
        classification_loss: likewise.
        regularization_loss: likewise.
        total_loss: the sum of the three.
        gradient_norm: global norm before clipping.
        finite: [] bool; when false nothing was updated.
    """

    localization_loss: Any
    classification_loss: Any
    regularization_loss: Any
    total_loss: Any
    gradient_norm: Any
    finite: Any


@dataclass(frozen=True, kw_only=True)
class StepOptions:
    """What the config says about a step beside the optimizer.

    Attributes:
        clip_norm: gradients are scaled down to this global norm; 0 for never.
        add_regularization: whether the L2 terms enter the total.
    """

    clip_norm: float = 0.0
    add_regularization: bool = True


class TrainingStep:
    """Calls as ``step(batch, learning_rate)``; compiled at the first call.

    Args:
        model: gives predictions and losses.
        state: what the step updates; the optimizer's variables are those that are trained.
        options: see there.
    """

    def __init__(self, model: SsdModel, state: TrainingState, options: StepOptions) -> None:
        self._model = model
        self._state = state
        self._options = options
        self._compiled = tf.function(self._step)

    def __call__(self, batch: Mapping[str, tf.Tensor], learning_rate: float) -> StepResult:
        """Takes a step and counts it, unless the loss or a gradient is not finite.

        Args:
            batch: padded examples under the names of ``tandem.fields``; IMAGE is
                [batch, height, width, 3] float32 in [0, 255].
            learning_rate: of this step.
        """
        used = {
            name: batch[name]
            for name in (
                fields.IMAGE,
                fields.BOXES,
                fields.CLASSES,
                fields.WEIGHTS,
                fields.NUM_BOXES,
            )
        }
        return StepResult(*self._compiled(used, tf.constant(learning_rate, tf.float32)))

    def _step(self, batch: Mapping[str, tf.Tensor], learning_rate: tf.Tensor) -> StepResult:
        model, options = self._model, self._options
        trained = list(self._state.optimizer.variables.values())
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(trained)
            predictions = model(model.preprocess(batch[fields.IMAGE]), training=True)
            losses = model.loss(predictions, batch)
            regularization = (
                model.regularization_loss() if options.add_regularization else tf.constant(0.0)
            )
            total = losses.localization + losses.classification + regularization
        gradients = tape.gradient(
            total, trained, unconnected_gradients=tf.UnconnectedGradients.ZERO
        )
        norm = tf.linalg.global_norm(gradients)
        finite = tf.math.is_finite(total) & tf.math.is_finite(norm)
        if options.clip_norm > 0:
            gradients, _ = tf.clip_by_global_norm(gradients, options.clip_norm, use_norm=norm)
        tf.cond(finite, lambda: self._apply(gradients, learning_rate), lambda: False)
        return StepResult(
            losses.localization, losses.classification, regularization, total, norm, finite
        )

    def _apply(self, gradients: list[tf.Tensor], learning_rate: tf.Tensor) -> bool:
        state = self._state
        step = state.global_step.read_value()
        state.optimizer.apply(gradients, learning_rate=learning_rate, step=step)
        if state.averages:
            state.averages.update(step)
        state.global_step.assign_add(1)
        return True
