"""A training in miniature: real variables of a given size, real steps, the trainer's own saver."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import tensorflow as tf
from prometheus_client import CollectorRegistry

from services.signals import StopRequest
from services.trainer.background import Background
from services.trainer.committing import Committer
from services.trainer.saving import Saver
from tandem.checkpoints.claims import claim_attempt
from tandem.checkpoints.objects import ObjectStore
from tandem.checkpoints.policies import RetentionPolicy
from tandem.checkpoints.retiring import Retirer
from tandem.checkpoints.runs import ensure_run
from tandem.telemetry.labels import SaveOutcome
from tandem.telemetry.trainer_metrics import TrainerMetrics
from tandem.training.optimizers import Momentum
from tandem.training.states import TrainingState, save_tensors

NUM_VARIABLES = 150  # and as many slots: MobileNetV2-FPNLite has about 300 weights
STEPS_AFTER = 20
_MATRIX = 512


class NotedMetrics(TrainerMetrics):
    """Remembers when commits were made."""

    def __init__(self) -> None:
        super().__init__(CollectorRegistry())
        self.committed_at: dict[int, float] = {}

    def record_save(self, step: int, *, outcome: SaveOutcome, seconds: float) -> None:
        super().record_save(step, outcome=outcome, seconds=seconds)
        if outcome == "ok":
            self.committed_at[step] = time.monotonic()


class Training:
    """Steps of about ``step_seconds`` on a state of ``megabytes``, half of it momentum."""

    def __init__(self, megabytes: float, *, step_seconds: float) -> None:
        per_variable = int(megabytes * 1e6 / 4 / 2 / NUM_VARIABLES)
        weights = {
            f"FeatureExtractor/layer_{i}/weights": tf.Variable(
                tf.random.stateless_normal([per_variable], [1, i])
            )
            for i in range(NUM_VARIABLES)
        }
        self.state = TrainingState(model=weights, optimizer=Momentum(weights, momentum=0.9))
        self._gradients = [tf.fill(weight.shape, 1e-4) for weight in weights.values()]
        self._matrix = tf.random.stateless_normal([_MATRIX, _MATRIX], [2, 2]) / _MATRIX**0.5
        self._step = tf.function(self._take_step)
        self._num_products = 1
        self._calibrate(step_seconds)

    def step(self) -> None:
        """Takes one step, and waits for its loss as the trainer does."""
        float(self._step(tf.constant(self._num_products)))

    def steps(self, number: int) -> float:
        """Seconds that some steps took."""
        began = time.perf_counter()
        for _ in range(number):
            self.step()
        return time.perf_counter() - began

    def _take_step(self, num_products: tf.Tensor) -> tf.Tensor:
        product = self._matrix
        for _ in tf.range(num_products):
            product = tf.linalg.matmul(product, self._matrix)
        with tf.control_dependencies([product]):
            self.state.optimizer.apply(
                self._gradients,
                learning_rate=tf.constant(1e-3),
                step=self.state.global_step.read_value(),
            )
        self.state.global_step.assign_add(1)
        return tf.reduce_mean(product)

    def _calibrate(self, step_seconds: float) -> None:
        self.steps(3)
        update = min(self.steps(1) for _ in range(5))
        self._num_products = 50
        product = max(1e-5, (min(self.steps(1) for _ in range(5)) - update) / 50)
        self._num_products = max(1, round((step_seconds - update) / product))


@contextmanager
def saving(
    training: Training, store: ObjectStore, scratch: Path, *, stop: StopRequest, deadline: float
) -> Iterator[tuple[Saver, Background, NotedMetrics]]:
    """The trainer's saver on a new attempt of a run; keeps one checkpoint."""
    ensure_run(store)
    attempt = claim_attempt(
        store,
        owner="bench",
        holder="bench",
        image="",
        config_text="",
        config_digest="",
        config_diff=lambda before: (),
        retention=RetentionPolicy(max_to_keep=1, max_unevaluated=0),
    )
    scratch.mkdir(parents=True, exist_ok=True)
    metrics, background = NotedMetrics(), Background()
    committer = Committer(store, attempt, retirer=Retirer(store, attempt), scratch=scratch)
    with Saver(
        committer,
        attempt,
        training.state,
        background=background,
        metrics=metrics,
        stop=stop,
        deadline_seconds=deadline,
        on_wait=lambda seconds: None,
        batch_size=1,
        samples_before=0,
        seconds_before=0.0,
    ) as saver:
        yield saver, background, metrics


def save_blocking(training: Training, folder: Path) -> list[Path]:
    """What a training without us does: TensorFlow's files, on the disk before the next step."""
    prefix = folder / f"ckpt-{training.state.step}"
    save_tensors(training.state.tensors, prefix)
    files = sorted(folder.glob(f"{prefix.name}.*"))
    for path in [*files, folder]:
        flush(path)
    return files


def flush(path: Path) -> None:
    """Waits until a file, or a folder's list of files, is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
