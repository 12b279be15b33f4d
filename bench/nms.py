"""Times ways to suppress non-maxima: `python bench/nms.py` prints a table.

`tandem` is tandem.postprocess.nms: TensorFlow's kernel mapped over classes and images. `combined`
is TensorFlow's fused operation, which doesn't say what anchor a detection comes from. `padded` is
`tf.image.non_max_suppression_padded` on all classes of a batch at once: tensor code, no kernel; it
is left out where its pairwise overlaps don't fit into memory. All are checked to find the same
scores. Times are the shortest of several runs.

The scores are those of a trained model (a few objects, many low scores), of an untrained one (all
nearly equal) and of a collapsed one (every anchor predicts the same box), with a score threshold
that lets nearly everything pass, as in real configs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tandem.postprocess.nms import NonMaxSuppression

SCORE_THRESHOLD = 1e-8
IOU_THRESHOLD = 0.6
MAX_DETECTIONS = 100
REPEATS = 5
SIZES = ((1, 2034, 1), (8, 2034, 1), (1, 2034, 90), (8, 2034, 90), (8, 51150, 1), (1, 51150, 90))
LARGEST_PADDED = 200_000  # scores; each is compared with 512 boxes at a time


class Case(NamedTuple):
    name: str
    boxes: tf.Tensor
    scores: tf.Tensor


def make_case(kind: str, *, batch: int, num_anchors: int, num_classes: int) -> Case:
    rng = np.random.default_rng(0)
    side = int(np.ceil(np.sqrt(num_anchors / 6)))
    grid = np.stack(np.meshgrid(np.arange(side), np.arange(side)), -1).reshape(-1, 2) / side
    centres = np.repeat(grid, 6, axis=0)[:num_anchors]
    sizes = rng.uniform(0.05, 0.5, (num_anchors, 2))
    logits = rng.normal(-4.6, 0.3, (batch, num_anchors, num_classes))
    centres = np.repeat(centres[None], batch, axis=0)
    sizes = np.repeat(sizes[None], batch, axis=0)
    if kind == "trained":
        logits = rng.normal(-9, 1.5, logits.shape)
        for image in range(batch):
            for _ in range(8):
                place, size = rng.uniform(0.2, 0.8, 2), rng.uniform(0.1, 0.5, 2)
                near = np.abs(centres[image] - place).max(-1) < 0.08
                centres[image, near] = place + rng.normal(0, 0.02, (near.sum(), 2))
                sizes[image, near] = size * rng.uniform(0.9, 1.1, (near.sum(), 2))
                logits[image, near, rng.integers(num_classes)] = rng.normal(0, 2, near.sum())
    if kind == "collapsed":
        centres, sizes = np.full_like(centres, 0.5), np.full_like(sizes, 0.3)
    boxes = np.concatenate([centres - sizes / 2, centres + sizes / 2], -1).astype(np.float32)
    name = f"{kind:9} batch {batch}  {num_anchors:5} anchors x {num_classes:2} classes"
    return Case(name, tf.constant(boxes), tf.sigmoid(tf.constant(logits, tf.float32)))


@tf.function
def tandem(boxes: tf.Tensor, scores: tf.Tensor) -> tf.Tensor:
    suppression = NonMaxSuppression(SCORE_THRESHOLD, IOU_THRESHOLD, MAX_DETECTIONS, MAX_DETECTIONS)
    visible = tf.ones(tf.shape(boxes)[:2], tf.bool)
    return suppression.select(boxes, scores=scores, visible=visible).scores


@tf.function
def padded(boxes: tf.Tensor, scores: tf.Tensor) -> tf.Tensor:
    batch, num_anchors, num_classes = scores.shape
    by_class = tf.reshape(tf.transpose(scores, [0, 2, 1]), [-1, num_anchors])
    chosen, numbers = tf.image.non_max_suppression_padded(
        tf.repeat(boxes, num_classes, axis=0),
        by_class,
        MAX_DETECTIONS,
        IOU_THRESHOLD,
        SCORE_THRESHOLD,
        pad_to_max_output_size=True,
    )
    exists = tf.sequence_mask(numbers, MAX_DETECTIONS)
    kept = tf.where(exists, tf.gather(by_class, chosen, batch_dims=1), 0.0)
    return tf.math.top_k(tf.reshape(kept, [batch, -1]), MAX_DETECTIONS).values


@tf.function
def combined(boxes: tf.Tensor, scores: tf.Tensor) -> tf.Tensor:
    return tf.image.combined_non_max_suppression(
        boxes[:, :, tf.newaxis],
        scores,
        MAX_DETECTIONS,
        MAX_DETECTIONS,
        IOU_THRESHOLD,
        SCORE_THRESHOLD,
        clip_boxes=False,
    ).nmsed_scores


def seconds(function: Callable[..., tf.Tensor], case: Case) -> tuple[float, tf.Tensor]:
    result = function(case.boxes, case.scores)
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        function(case.boxes, case.scores).numpy()
        times.append(time.perf_counter() - start)
    return min(times), result


def row(case: Case) -> str:
    time_taken, expected = seconds(tandem, case)
    cells = [f"{1000 * time_taken:>10.1f}"]
    for other in (combined, padded):
        if other is padded and tf.size(case.scores) > LARGEST_PADDED:
            cells.append(f"{'-':>10}")
            continue
        time_taken, found = seconds(other, case)
        np.testing.assert_allclose(found, expected, atol=1e-6)
        cells.append(f"{1000 * time_taken:>10.1f}")
    return f"{case.name:52}" + "".join(cells)


def main() -> None:
    print(f"{'':52}{'tandem':>10}{'combined':>10}{'padded':>10}   milliseconds per batch")
    for batch, num_anchors, num_classes in SIZES:
        for kind in ("trained", "untrained", "collapsed"):
            case = make_case(kind, batch=batch, num_anchors=num_anchors, num_classes=num_classes)
            print(row(case), flush=True)


if __name__ == "__main__":
    main()
