"""Hard example mining: only the anchors with the largest losses train, near-duplicates left out."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import NamedTuple

import tensorflow as tf

from tandem.boxes.matchers import UNMATCHED


class MinedBy(enum.Enum):
    """The loss that makes an example hard."""

    CLASSIFICATION = "classification"
    LOCALIZATION = "localization"
    BOTH = "both"


class MinedLosses(NamedTuple):
    """Sums over the anchors that were chosen, over all images of the batch."""

    localization: tf.Tensor
    """[] float32."""
    classification: tf.Tensor
    """[] float32."""


@dataclass(frozen=True)
class HardExampleMiner:
    """Non-maximum suppression with the loss as the score (Shrivastava et al., arXiv 1604.03540).

    After it, negatives may be limited by the number of positives, the hardest first.
    """

    iou_threshold: float
    """An anchor whose box overlaps that of a harder one by more than this is left out."""
    mined_by: MinedBy
    num_hard_examples: int | None = None
    """Most anchors per image; None is no limit."""
    max_negatives_per_positive: int | None = None
    """None keeps all negatives."""
    min_negatives_per_image: int = 0
    """Negatives kept however few the positives are, if `max_negatives_per_positive` is set."""
    classification_weight: float = 1.0
    """Of the classification loss in the sum that `MinedBy.BOTH` sorts by."""
    localization_weight: float = 1.0
    """Of the localisation loss in that sum."""

    def mine(
        self,
        *,
        localization: tf.Tensor,
        classification: tf.Tensor,
        boxes: tf.Tensor,
        matches: tf.Tensor,
    ) -> MinedLosses:
        """Chooses anchors and sums their losses.

        Args:
            localization: [batch, num_anchors] float32 losses.
            classification: [batch, num_anchors] float32 losses, summed over classes.
            boxes: [batch, num_anchors, 4] float32, decoded predictions.
            matches: [batch, num_anchors] int32, as of the matcher.
        """
        chosen = self.choose(
            localization=localization, classification=classification, boxes=boxes, matches=matches
        )
        return MinedLosses(
            localization=tf.reduce_sum(tf.where(chosen, localization, 0.0)),
            classification=tf.reduce_sum(tf.where(chosen, classification, 0.0)),
        )

    def choose(
        self,
        *,
        localization: tf.Tensor,
        classification: tf.Tensor,
        boxes: tf.Tensor,
        matches: tf.Tensor,
    ) -> tf.Tensor:
        """[batch, num_anchors] bool: the anchors that train. Arguments as of `mine`."""
        hardness = tf.stop_gradient(self._hardness(localization, classification))
        return tf.map_fn(
            lambda image: self._choose_in_image(*image),
            (hardness, tf.stop_gradient(boxes), matches),
            fn_output_signature=tf.TensorSpec(matches.shape[1:], tf.bool),
        )

    def _hardness(self, localization: tf.Tensor, classification: tf.Tensor) -> tf.Tensor:
        if self.mined_by is MinedBy.CLASSIFICATION:
            return classification
        if self.mined_by is MinedBy.LOCALIZATION:
            return localization
        return classification * self.classification_weight + localization * self.localization_weight

    def _choose_in_image(
        self, hardness: tf.Tensor, boxes: tf.Tensor, matches: tf.Tensor
    ) -> tf.Tensor:
        num_anchors = tf.size(hardness)
        limit = num_anchors if self.num_hard_examples is None else self.num_hard_examples
        # A single kernel call per image: thousands of survivors make the masked, batched form of
        # suppression in tandem.postprocess slower than this loop over a few images.
        hardest = tf.image.non_max_suppression(boxes, hardness, limit, self.iou_threshold)
        kept = self._within_ratio(tf.gather(matches, hardest))
        chosen = tf.scatter_nd(hardest[:, tf.newaxis], kept, [num_anchors])
        # Suppression passes NaN over; left out, a diverged model would train on with a loss of 0.
        return chosen | tf.math.is_nan(hardness)

    def _within_ratio(self, matches: tf.Tensor) -> tf.Tensor:
        """[num_hardest] bool: positives, and all until the negatives have reached their number."""
        if self.max_negatives_per_positive is None:
            return tf.ones_like(matches, tf.bool)
        positive = matches >= 0
        num_positives = tf.reduce_sum(tf.cast(positive, tf.int32))
        most = tf.maximum(
            self.max_negatives_per_positive * num_positives, self.min_negatives_per_image
        )
        return positive | (tf.cumsum(tf.cast(matches == UNMATCHED, tf.int32)) <= most)
