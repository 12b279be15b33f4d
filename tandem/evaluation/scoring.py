"""Runs a model over an evaluation set: detections and losses in, metrics out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from tandem import fields
from tandem.data.pipelines import InputPipeline
from tandem.errors import DataError
from tandem.evaluation.coco import (
    CocoEvaluator,
    ImageDetections,
    ImageGroundtruth,
    absolute_boxes,
)
from tandem.evaluation.coco_metrics import CocoMetrics
from tandem.models.ssd import SsdModel

_LOSS_INPUTS = (fields.BOXES, fields.CLASSES, fields.WEIGHTS, fields.NUM_BOXES)
_MODEL_INPUTS = (fields.IMAGE, fields.TRUE_SIZE, *_LOSS_INPUTS)


@dataclass(frozen=True)
class Evaluation:
    """Numbers of one checkpoint on one set.

    Attributes:
        metrics: COCO's.
        losses: by TensorBoard tag, in inference mode; the mean over images of what each would have
            as a batch of its own, so they don't depend on the batch size.
        num_expected: images that the record files hold.
        num_read: images that came out of them.
        num_scored: images that entered the metrics.
        model_seconds: time in the model, waiting for data included.
        metrics_seconds: time in COCO's matching.
    """

    metrics: CocoMetrics
    losses: Mapping[str, float]
    num_expected: int
    num_read: int
    num_scored: int
    model_seconds: float
    metrics_seconds: float


class Scorer:
    """Scores a model on one set, again and again; compiled at the first batch.

    Args:
        model: its variables are read at each call of `score`.
        pipeline: of the evaluation set.
        category_names: zero-based class to name.
    """

    def __init__(
        self, model: SsdModel, pipeline: InputPipeline, *, category_names: Mapping[int, str]
    ) -> None:
        self._model = model
        self._pipeline = pipeline
        self._category_names = category_names
        spec = pipeline.dataset.element_spec
        self._predict = tf.function(
            self._predict_batch, input_signature=[{name: spec[name] for name in _MODEL_INPUTS}]
        )

    def score(
        self,
        *,
        on_progress: Callable[[int, int], None] = lambda done, expected: None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> Evaluation:
        """Scores the model's present weights.

        Args:
            on_progress: told images done and expected after each batch; what it raises ends the
                evaluation.
            monotonic: seconds.

        Raises:
            RecordError: a record can't be read.
            DataError: another number of images came than the files hold; no number of a part of
                the set is returned.
        """
        coco = CocoEvaluator(self._category_names)
        losses: list[np.ndarray] = []
        num_read, began = 0, monotonic()
        for batch in self._pipeline.batches():
            detections, batch_losses = self._predict({name: batch[name] for name in _MODEL_INPUTS})
            losses.append(batch_losses.numpy())
            num_read += _add_images(coco, batch, detections, first=num_read)
            on_progress(num_read, self._pipeline.num_examples)
        predicted = monotonic()
        if num_read != self._pipeline.num_examples:
            raise DataError(
                f"{num_read} images were read of {self._pipeline.num_examples} that the files held "
                "at the start: did they change?"
            )
        metrics = coco.result()
        return Evaluation(
            metrics=metrics,
            losses=self._mean_losses(np.concatenate(losses)),
            num_expected=self._pipeline.num_examples,
            num_read=num_read,
            num_scored=metrics.num_images,
            model_seconds=predicted - began,
            metrics_seconds=monotonic() - predicted,
        )

    def _predict_batch(self, batch: Mapping[str, tf.Tensor]) -> tuple[Any, tf.Tensor]:
        """Detections, and [batch, 2] localisation and classification losses."""
        model = self._model
        predictions = model(model.preprocess(batch[fields.IMAGE]), training=False)
        truth = {name: batch[name] for name in _LOSS_INPUTS}

        def loss_of(index: tf.Tensor) -> tf.Tensor:
            one = {name: value[index : index + 1] for name, value in truth.items()}
            alone = predictions._replace(
                box_encodings=predictions.box_encodings[index : index + 1],
                class_logits=predictions.class_logits[index : index + 1],
            )
            losses = model.loss(alone, one)
            return tf.stack([losses.localization, losses.classification])

        indices = tf.range(tf.shape(batch[fields.IMAGE])[0])
        losses = tf.map_fn(loss_of, indices, fn_output_signature=tf.TensorSpec([2], tf.float32))
        return model.detect(predictions, batch[fields.TRUE_SIZE]), losses

    def _mean_losses(self, per_image: np.ndarray) -> dict[str, float]:
        localization, classification = (float(value) for value in per_image.mean(axis=0))
        regularization = float(self._model.regularization_loss())
        return {
            "Loss/localization_loss": localization,
            "Loss/classification_loss": classification,
            "Loss/regularization_loss": regularization,
            "Loss/total_loss": localization + classification + regularization,
        }


def _add_images(
    coco: CocoEvaluator,
    batch: Mapping[str, Any],
    detections: Any,  # noqa: ANN401
    *,
    first: int,
) -> int:
    """Adds each image of a batch at its original size; returns their number.

    COCO breaks ties between equal scores by the order of image ids: here the order of the records.
    """
    truth = {name: tensor.numpy() for name, tensor in batch.items() if name != fields.IMAGE}
    found = type(detections)(*(tensor.numpy() for tensor in detections))
    for i, record in enumerate(truth[fields.RECORD]):
        size = truth[fields.ORIGINAL_SIZE][i]
        boxes, kept = truth[fields.NUM_BOXES][i], found.num_detections[i]
        coco.add_image(
            f"{first + i:09d} {record.decode()}",
            groundtruth=ImageGroundtruth(
                boxes=absolute_boxes(truth[fields.BOXES][i, :boxes], size=size),
                classes=truth[fields.CLASSES][i, :boxes],
                is_crowd=truth[fields.IS_CROWD][i, :boxes],
                area=truth[fields.AREA][i, :boxes],
            ),
            detections=ImageDetections(
                boxes=absolute_boxes(found.boxes[i, :kept], size=size),
                classes=found.classes[i, :kept],
                scores=found.scores[i, :kept],
            ),
        )
    return len(truth[fields.RECORD])
