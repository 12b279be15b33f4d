"""Runs our model on a golden case's inputs and compares every output that the case stores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import tensorflow as tf

from services.ctl.golden.cases import GoldenCase
from services.ctl.golden.comparisons import Comparison, compare_arrays
from services.ctl.golden.detections import compare_detections
from services.ctl.golden.training import compare_training, losses_of
from tandem.errors import InputError
from tandem.models.ssd import Predictions, SsdModel
from tandem.postprocess.detections import Detections

OUTPUTS = 1e-4
"""Feature maps, predictions and losses."""

ANCHORS = 1e-5


_REQUIRED = ("images_uint8", "anchors", "box_encodings", "class_predictions_with_background")


def compare_outputs(model: SsdModel, case: GoldenCase) -> Iterator[Comparison]:
    """Compares in the order in which a forward pass makes them; the weights must be assigned.

    Raises:
        InputError: the case lacks what every case of an SSD stores.
    """
    arrays = case.arrays
    lacking = [name for name in _REQUIRED if name not in arrays]
    if lacking:
        raise InputError(f"{case.folder}: golden.npz lacks {', '.join(lacking)}")
    images = model.preprocess(tf.constant(arrays["images_uint8"]))
    yield from _compare_preprocessing(images.numpy(), arrays)
    yield compare_arrays("anchors", model.anchors.numpy(), arrays["anchors"], tolerance=ANCHORS)
    predictions = model(images, training=False)
    yield from _compare_stored(_outputs(model, predictions), arrays)
    yield from _compare_number_of_maps(predictions, arrays)
    losses = losses_of(model, predictions, case)
    yield from _compare_stored({f"eval_Loss_{n}": v for n, v in losses.items()}, arrays)
    yield from compare_detections(_detect(model, predictions), arrays)
    yield from compare_training(model, images, case)


def _outputs(model: SsdModel, predictions: Predictions) -> dict[str, tf.Tensor]:
    maps = {f"feature_map_{i}": x for i, x in enumerate(predictions.feature_maps)}
    return {
        **maps,
        "box_encodings": predictions.box_encodings,
        "class_predictions_with_background": predictions.class_logits,
        "det_raw_detection_boxes": model.decode(predictions.box_encodings),
    }


def _detect(model: SsdModel, predictions: Predictions) -> Detections:
    num_images = predictions.box_encodings.shape[0]
    sizes = tf.constant([model.image_size] * num_images)
    # As a graph, which is how it is always used.
    return tf.function(model.detect).get_concrete_function(predictions, sizes)(predictions, sizes)


def _compare_stored(
    ours: Mapping[str, tf.Tensor], arrays: Mapping[str, np.ndarray]
) -> Iterator[Comparison]:
    for name, value in ours.items():
        if name in arrays:
            yield compare_arrays(name, value.numpy(), arrays[name], tolerance=OUTPUTS)


def _compare_number_of_maps(
    predictions: Predictions, arrays: Mapping[str, np.ndarray]
) -> Iterator[Comparison]:
    ours, golden = len(predictions.feature_maps), sum("feature_map_" in name for name in arrays)
    if golden:
        yield Comparison("feature maps", float(abs(ours - golden)), 0.0, f"{golden} maps")


def _compare_preprocessing(
    images: np.ndarray, arrays: Mapping[str, np.ndarray]
) -> Iterator[Comparison]:
    if "preprocessed_sum" in arrays:
        total = abs(float(images.sum(dtype=np.float64)) - float(arrays["preprocessed_sum"]))
        size = float(np.abs(images).sum(dtype=np.float64))
        yield Comparison("preprocessed_sum", total / size, OUTPUTS, "of the sum of absolute values")
    if "preprocessed_corner" in arrays:
        corner = arrays["preprocessed_corner"]
        ours = images[:, : corner.shape[1], : corner.shape[2]]
        yield compare_arrays("preprocessed_corner", ours, corner, tolerance=OUTPUTS)
