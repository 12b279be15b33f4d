"""Which ground-truth box each anchor is trained to find."""

from __future__ import annotations

from dataclasses import dataclass

import tensorflow as tf

UNMATCHED = -1
"""The anchor is trained as background."""

IGNORED = -2
"""The anchor is left out of the loss: too near to a box for background, too far to match it."""


@dataclass(frozen=True)
class ArgmaxMatcher:
    """Gives each anchor its most similar box, if that is similar enough.

    Between the two thresholds an anchor is ignored and below both it is background; with
    `negatives_lower_than_unmatched` false it is the other way round.
    """

    matched_threshold: float | None
    """At least this similar is a match; None matches every anchor."""
    unmatched_threshold: float = 0.5
    """Less similar than this is background; at most `matched_threshold`."""
    negatives_lower_than_unmatched: bool = True
    force_match_for_each_row: bool = False
    """Each box also gets its most similar anchor, however similar that is."""

    def match(
        self, similarity: tf.Tensor, *, valid: tf.Tensor, forceable: tf.Tensor | None = None
    ) -> tf.Tensor:
        """Matches of a batch of images, or of one.

        Of equal similarities the lower index wins, for anchors and for boxes.

        Args:
            similarity: [..., num_boxes, num_anchors] float32; rows of padding may hold anything.
            valid: [..., num_boxes] bool, False for padding, which never matches.
            forceable: [..., num_boxes] bool, boxes that may be forced on an anchor; None is all.
                Others still match where they are similar enough.

        Returns:
            [..., num_anchors] int32: index of the box, `UNMATCHED` or `IGNORED`. All anchors are
            unmatched where no box is valid.
        """
        if similarity.shape[-2] in (0, None):
            similarity, valid, forceable = _with_one_row_of_padding(similarity, valid, forceable)
        similarity = tf.where(valid[..., tf.newaxis], similarity, similarity.dtype.min)
        matches = self._matched_by_threshold(similarity)
        matches = tf.where(tf.reduce_any(valid, axis=-1, keepdims=True), matches, UNMATCHED)
        if not self.force_match_for_each_row:
            return matches
        may_force = valid if forceable is None else valid & forceable
        forced = _forced_rows(similarity, may_force)
        return tf.where(forced >= 0, forced, matches)

    def _matched_by_threshold(self, similarity: tf.Tensor) -> tf.Tensor:
        matches = tf.argmax(similarity, axis=-2, output_type=tf.int32)
        if self.matched_threshold is None:
            return matches
        best = tf.reduce_max(similarity, axis=-2)
        below, between = (
            (UNMATCHED, IGNORED) if self.negatives_lower_than_unmatched else (IGNORED, UNMATCHED)
        )
        matches = tf.where(best < self.matched_threshold, between, matches)
        return tf.where(best < self.unmatched_threshold, below, matches)


def _with_one_row_of_padding(
    similarity: tf.Tensor, valid: tf.Tensor, forceable: tf.Tensor | None
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor | None]:
    """An argmax over no rows is an error, and only here the row number may be 0."""
    batch = [[0, 0]] * (len(similarity.shape) - 2)
    similarity = tf.pad(similarity, [*batch, [0, 1], [0, 0]])
    valid = tf.pad(valid, [*batch, [0, 1]])
    return similarity, valid, None if forceable is None else tf.pad(forceable, [*batch, [0, 1]])


def _forced_rows(similarity: tf.Tensor, may_force: tf.Tensor) -> tf.Tensor:
    """[..., num_anchors] int32: the lowest row whose best anchor this is, or -1."""
    shape = tf.shape(similarity)
    num_rows, num_anchors = shape[-2], shape[-1]
    best_anchor = tf.argmax(similarity, axis=-1, output_type=tf.int32)
    best_anchor = tf.reshape(best_anchor, [-1, num_rows])
    images = tf.range(tf.shape(best_anchor)[0])
    # A negative segment is dropped. Row numbers as floats (exact to 2**24) stay on the accelerator.
    segments = tf.where(
        tf.reshape(may_force, [-1, num_rows]),
        best_anchor + images[:, tf.newaxis] * num_anchors,
        -1,
    )
    rows = tf.broadcast_to(tf.range(num_rows, dtype=tf.float32), tf.shape(segments))
    lowest = tf.math.unsorted_segment_min(
        tf.reshape(rows, [-1]), tf.reshape(segments, [-1]), tf.size(images) * num_anchors
    )
    nothing_forces = lowest >= tf.cast(num_rows, tf.float32)
    lowest = tf.where(nothing_forces, -1, tf.cast(tf.where(nothing_forces, 0.0, lowest), tf.int32))
    return tf.reshape(lowest, tf.concat([shape[:-2], [num_anchors]], axis=0))
