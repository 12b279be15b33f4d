"""The two losses of an SSD, summed over a batch, weighted and normalised."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import tensorflow as tf

from tandem.boxes.targets import Targets
from tandem.losses.build import DetectionLosses


class Losses(NamedTuple):
    """Both of one batch, ready to be added up."""

    localization: tf.Tensor
    """[] float32."""
    classification: tf.Tensor
    """[] float32."""


@dataclass(frozen=True)
class SsdLoss:
    """How predictions are compared with targets.

    Attributes:
        losses: per anchor, their weights, and the choice of hard examples if there is one.
        normalize_by_matches: divide both by the summed weight of matched anchors, at least 1.
        normalize_by_code_size: divide the localisation loss by the numbers in a box code.
    """

    losses: DetectionLosses
    normalize_by_matches: bool
    normalize_by_code_size: bool

    @property
    def mines(self) -> bool:
        """Only hard examples train, which takes the decoded boxes."""
        return self.losses.hard_example_miner is not None

    def __call__(
        self,
        box_encodings: tf.Tensor,
        class_logits: tf.Tensor,
        *,
        targets: Targets,
        decoded_boxes: tf.Tensor | None,
    ) -> Losses:
        """Losses of a batch.

        Args:
            box_encodings: [batch, num_anchors, code_size] float32.
            class_logits: [batch, num_anchors, num_classes + 1] float32.
            targets: what each anchor should predict.
            decoded_boxes: [batch, num_anchors, 4] float32; needed where ``mines``.
        """
        localization = self.losses.localization(
            box_encodings,
            targets=targets.box_targets,
            weights=targets.box_weights,
            ignore_nan_targets=True,
        )
        classification = tf.reduce_sum(
            self.losses.classification(
                class_logits, targets=targets.class_targets, weights=targets.class_weights
            ),
            axis=-1,
        )
        sums = Losses(tf.reduce_sum(localization), tf.reduce_sum(classification))
        if self.losses.hard_example_miner is not None:
            mined = self.losses.hard_example_miner.mine(
                localization=localization,
                classification=classification,
                boxes=decoded_boxes,
                matches=targets.matches,
            )
            sums = Losses(mined.localization, mined.classification)
        return self._normalized(sums, targets, code_size=box_encodings.shape[-1])

    def _normalized(self, sums: Losses, targets: Targets, *, code_size: int) -> Losses:
        normalizer = tf.constant(1.0)
        if self.normalize_by_matches:
            # At least 1: a batch without a match has a classification loss too.
            normalizer = tf.maximum(tf.reduce_sum(targets.box_weights), 1.0)
        per_code = float(code_size) if self.normalize_by_code_size else 1.0
        return Losses(
            localization=sums.localization
            * self.losses.localization_weight
            / (normalizer * per_code),
            classification=sums.classification * self.losses.classification_weight / normalizer,
        )
