"""Compares training mode: losses with batch statistics, gradients, moving statistics after a step.

Batch statistics on random weights amplify rounding: a 1x1 feature map normalises two numbers. Where
a line differs, the model is evaluated once more in double precision, and the line says how far
that is from the stored value: about as far means that the stored value carries the original's
rounding. The verdict stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

import keras
import numpy as np
import tensorflow as tf

from services.ctl.golden.cases import GoldenCase
from services.ctl.golden.comparisons import Comparison, compare_all, compare_arrays
from services.ctl.golden.weights import assign_weights
from tandem.models.build import build_model
from tandem.models.ssd import Predictions, SsdModel
from tandem.models.variables import checkpoint_tensors

LOSSES = 1e-4
MOVING_STATISTICS = 1e-4

GRADIENTS = 1e-3
"""Of the largest gradient, where the case is well conditioned: it stores gradients in full."""

NORMS_MEDIAN = 0.25
"""Of the norm, for the median of all variables elsewhere: finds a wrong factor, not rounding."""


def losses_of(model: SsdModel, predictions: Predictions, case: GoldenCase) -> dict[str, tf.Tensor]:
    """The four losses under the original's names."""
    truth = {name: tf.constant(value) for name, value in case.groundtruth.items()}
    boxes, logits = (tf.cast(x, tf.float32) for x in predictions[:2])
    losses = model.loss(Predictions(boxes, logits, predictions.feature_maps), truth)
    regularization = tf.cast(model.regularization_loss(), tf.float32)
    return {
        "localization_loss": losses.localization,
        "classification_loss": losses.classification,
        "regularization_loss": regularization,
        "total_loss": losses.localization + losses.classification + regularization,
    }


@dataclass(frozen=True)
class _Training:
    losses: Mapping[str, np.ndarray]
    gradients: Mapping[str, np.ndarray]
    moving: Mapping[str, np.ndarray]
    """Moving statistics after as many runs as the original's recorder had done."""


def compare_training(model: SsdModel, images: tf.Tensor, case: GoldenCase) -> Iterator[Comparison]:
    """Compares with what the case stores; moves the model's moving statistics."""
    if "train_Loss_total_loss" not in case.arrays:
        return
    ours = _train(model, images, case)
    rows = [*_compare_losses(ours, case), *_compare_moving(ours, case)]
    if not all(row.equal for row in rows):
        exact = _train_exactly(images, case)
        rows = _note_double_precision(
            rows, [*_compare_losses(exact, case), *_compare_moving(exact, case)]
        )
    yield from rows
    yield from _compare_gradients(ours, case.arrays)


def _note_double_precision(rows: list[Comparison], exact: list[Comparison]) -> list[Comparison]:
    """Says of each line that differs how far double precision is from the stored value."""
    noted = []
    for row, other in zip(rows, exact, strict=True):
        note = f"in double precision {other.difference:.2e}"
        note = f"{row.note}; {note}" if row.note else note
        noted.append(row if row.equal else replace(row, note=note))
    return noted


def _train(model: SsdModel, images: tf.Tensor, case: GoldenCase) -> _Training:
    variables = {v.path: v.value for v in model.trainable_variables}
    with tf.GradientTape() as tape:
        losses = losses_of(model, model(images, training=True), case)
    gradients = tape.gradient(losses["total_loss"], variables)
    for _ in range(_num_training_runs(case) - 1):
        model(images, training=True)
    return _Training(
        losses={name: value.numpy() for name, value in losses.items()},
        gradients={name: value.numpy() for name, value in gradients.items()},
        moving={n: v.numpy() for n, v in checkpoint_tensors(model).items() if "/moving_" in n},
    )


def _num_training_runs(case: GoldenCase) -> int:
    """Times that the original's training graph ran before its variables were stored.

    Every run moves the statistics. In the stored cases they have moved by 1 + d + d^2 times what
    one run with decay d does, and once more where gradients were stored in full.
    """
    return 4 if any(name.startswith("grad/") for name in case.arrays) else 3


def _train_exactly(images: tf.Tensor, case: GoldenCase) -> _Training:
    with _double_precision():
        model = build_model(case.config.model)
        assign_weights(model)
        return _train(model, tf.cast(images, tf.float64), case)


@contextmanager
def _double_precision() -> Iterator[None]:
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy("float64")
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)


def _compare_losses(ours: _Training, case: GoldenCase) -> Iterator[Comparison]:
    for name, value in ours.losses.items():
        stored = f"train_Loss_{name}"
        yield compare_arrays(stored, value, case.arrays[stored], tolerance=LOSSES)


def _compare_moving(ours: _Training, case: GoldenCase) -> Iterator[Comparison]:
    """A few moving statistics in full; of all, their sums relative to the sum of sizes."""
    if "after1step_sums" not in case.arrays:
        return
    prefix = "after1step/"
    names = [n.removeprefix(prefix) for n in case.arrays if n.startswith(prefix)]
    pairs = {n: (ours.moving[n], case.arrays[prefix + n]) for n in names if n in ours.moving}
    yield compare_all("train_moving_statistics", pairs, tolerance=MOVING_STATISTICS)
    sums = case.arrays["after1step_sums"]
    golden_sums = dict(zip(case.arrays["after1step_sum_names"], sums, strict=True))
    differences = {
        name: abs(value.sum(dtype=np.float64) - golden_sums[name])
        / np.abs(value).sum(dtype=np.float64)
        for name, value in ours.moving.items()
    }
    worst = max(differences, key=lambda name: differences[name])
    note = f"worst of {len(differences)}: {worst}"
    yield Comparison("train_moving_sums", differences[worst], MOVING_STATISTICS, note)


def _compare_gradients(ours: _Training, arrays: Mapping[str, np.ndarray]) -> Iterator[Comparison]:
    if "train_grad_names" not in arrays:
        return
    names = [str(name) for name in arrays["train_grad_names"]]
    golden = arrays["train_grad_norms"]
    norms = np.asarray([np.linalg.norm(ours.gradients[name]) for name in names])
    full = {n: arrays[f"grad/{n}"] for n in names if f"grad/{n}" in arrays}
    if not full:
        relative = np.abs(norms - golden)[golden > 0] / golden[golden > 0]
        note = f"median of {len(names)} norms; rounding is amplified here"
        yield Comparison("train_gradient_norms", float(np.median(relative)), NORMS_MEDIAN, note)
        return
    yield compare_arrays("train_gradient_norms", norms, golden, tolerance=GRADIENTS)
    largest = max(float(np.max(np.abs(value))) for value in full.values())
    difference = max(
        float(np.max(np.abs(ours.gradients[name] - value))) for name, value in full.items()
    )
    note = f"{len(full)} in full, of the largest gradient"
    yield Comparison("train_gradients", difference / largest, GRADIENTS, note)
