"""Applying the configured augmentations to an example, one after another.

Every step draws its random numbers from its own seed alone, made of the run's seed, the number of
the example since the beginning of training and the number of the step. So an example is augmented
alike whichever worker does it, and a resumed run goes on as one that never stopped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import tensorflow as tf

from tandem import fields

Example = dict[str, tf.Tensor]

PER_BOX = (fields.BOXES, fields.CLASSES, fields.WEIGHTS, fields.IS_CROWD, fields.AREA)
"""The keys of an example dict that have one row per box."""


class Step(Protocol):
    """One augmentation."""

    def apply(self, example: Example, *, seed: tf.Tensor) -> Example:
        """Returns a changed copy; the seed is [2] int64."""


def apply_steps(steps: Sequence[Step], example: Example, *, seed: tf.Tensor) -> Example:
    """Applies the steps in order.

    Args:
        steps: the augmentations.
        example: a decoded example; IMAGE may be uint8 or float32.
        seed: [2] int64, of this example.
    """
    for number, step in enumerate(steps):
        example = step.apply(example, seed=tf.random.fold_in(seed, number))
    return example
