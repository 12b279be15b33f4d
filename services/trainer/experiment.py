"""From settings to everything that is needed to train, without a trace in the run folder."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

import keras

from services.trainer.settings import TrainerSettings
from tandem.checkpoints.names import EvalSet
from tandem.config.eval_sets import eval_sets
from tandem.config.pipeline import load_pipeline
from tandem.config.preflight import Preflight, check_pipeline
from tandem.data.build import build_training_dataset
from tandem.data.pipelines import InputPipeline
from tandem.models.build import build_model
from tandem.models.ssd import SsdModel
from tandem.protos.pipeline_pb2 import TrainEvalPipelineConfig
from tandem.training.build import (
    build_optimizer_schedule,
    build_state,
    build_step_options,
    settings_without_effect,
)
from tandem.training.restore import RestoreReport, restore_fine_tune
from tandem.training.schedules import Schedule
from tandem.training.states import TrainingState
from tandem.training.steps import TrainingStep

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Experiment:
    """A config that was checked, and what was built from it.

    Attributes:
        config: the effective one: overrides and settings are merged.
        preflight: the files that it names, found.
        model: at its initial weights.
        state: the model's variables with the optimizer's.
        take_step: applies one batch to the state.
        schedule: learning rate by finished steps.
        eval_sets: what evaluators of this config score.
        seed: of shuffling and augmentation.
    """

    config: TrainEvalPipelineConfig
    preflight: Preflight
    model: SsdModel
    state: TrainingState
    take_step: TrainingStep
    schedule: Schedule
    eval_sets: tuple[EvalSet, ...]
    seed: int
    _data: dict[int, InputPipeline] = field(default_factory=dict)

    @property
    def last_step(self) -> int | None:
        """Where training ends; None when it goes on until it is stopped."""
        return self.config.train_config.num_steps or None

    @property
    def batch_size(self) -> int:
        """Images per step."""
        return self.config.train_config.batch_size

    def data(self, *, first_step: int) -> InputPipeline:
        """The training data from a step on; built once for each."""
        assert self.preflight.train is not None, "checked for training"
        if first_step not in self._data:
            self._data[first_step] = build_training_dataset(
                self.config,
                label_map=self.preflight.train.label_map,
                num_classes=self.preflight.num_classes,
                seed=self.seed,
                first_step=first_step,
            )
        return self._data[first_step]

    def fine_tune(self) -> RestoreReport | None:
        """Loads the fine-tune checkpoint into the model; None when the config names none."""
        if self.preflight.fine_tune is None:
            return None
        train = self.config.train_config
        return restore_fine_tune(
            self.model,
            self.preflight.fine_tune.prefix,
            checkpoint_type=_fine_tune_type(train.fine_tune_checkpoint_type, train),
            load_all_detection_vars=train.load_all_detection_checkpoint_vars,
        )


def _fine_tune_type(stated: str, train: object) -> str:
    """Configs from before `fine_tune_checkpoint_type` say it with a boolean."""
    if stated:
        return stated
    is_detection = getattr(train, "from_detection_checkpoint", False)
    return "detection" if is_detection else "classification"


def load_experiment(settings: TrainerSettings) -> Experiment:
    """Reads, checks and builds; writes nothing.

    Raises:
        InputError: what is wrong with the config, or with what it names.
    """
    overrides = list(settings.override)
    if settings.num_train_steps is not None:
        overrides.append(f"train_config {{ num_steps: {settings.num_train_steps} }}")
    config = load_pipeline(settings.config, overrides=overrides)
    preflight = check_pipeline(config, for_training=True)
    for line in settings_without_effect(config.train_config):
        logger.info("without effect: %s", line)
    schedule = build_optimizer_schedule(config.train_config.optimizer)
    _warn_of_short_decay(schedule, config.train_config.num_steps)
    keras.utils.set_random_seed(settings.seed)
    model = build_model(config.model)
    state = build_state(config.train_config, model)
    return Experiment(
        config=config,
        preflight=preflight,
        model=model,
        state=state,
        take_step=TrainingStep(model, state, build_step_options(config.train_config)),
        schedule=schedule,
        eval_sets=eval_sets(config),
        seed=settings.seed,
    )


def _warn_of_short_decay(schedule: Schedule, num_steps: int) -> None:
    """A decay that is much longer than the run never gets to its small rates."""
    if not num_steps:
        return
    highest = max(schedule(step) for step in range(0, num_steps, 1 + num_steps // 1000))
    final = schedule(num_steps - 1)
    if highest > 0 and 0.5 * highest < final != schedule(0):
        logger.warning(
            "training ends at learning rate %.4g, still %.0f %% of its highest: the schedule of "
            "the config is longer than num_steps %d",
            final,
            min(100.0, 100 * final / highest),
            num_steps,
        )
