"""Training parts from a ``train_config``.

Fields that this version can't honour are refused when they are set; those that make no difference
here are named by ``settings_without_effect`` so that a process can say so once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import tensorflow as tf

from tandem.config.schedules import schedule_problems
from tandem.errors import ConfigError
from tandem.models.ssd import SsdModel
from tandem.models.variables import checkpoint_tensors
from tandem.protos import optimizer_pb2, train_pb2
from tandem.training.optimizers import Adam, Momentum, MovingAverages, Optimizer, RmsProp
from tandem.training.schedules import (
    Constant,
    CosineDecay,
    ExponentialDecay,
    ManualSteps,
    Schedule,
)
from tandem.training.states import TrainingState
from tandem.training.steps import StepOptions

_REFUSED = (
    "bias_grad_multiplier",
    "merge_multiple_label_boxes",
    "use_multiclass_scores",
    "use_bfloat16",
)

_WITHOUT_EFFECT = {
    "sync_replicas": "one process trains",
    "startup_delay_steps": "one process trains",
    "replicas_to_aggregate": "one process trains",
    "keep_checkpoint_every_n_hours": "max_to_keep and the ledger's best decide what is kept",
    "batch_queue_capacity": "tf.data sizes its own queues",
    "num_batch_queue_threads": "tf.data sizes its own queues",
    "prefetch_queue_capacity": "tf.data sizes its own queues",
    "unpad_groundtruth_tensors": "padding never enters the loss",
    "retain_original_images": "originals are not kept while training",
    "summarize_gradients": "the global gradient norm is always recorded",
    "fine_tune_checkpoint_version": "the file itself shows its version",
    "run_fine_tune_checkpoint_dummy_computation": "weights exist once the model is built",
}


def settings_without_effect(config: train_pb2.TrainConfig) -> list[str]:
    """``field: reason`` for every field that is set and changes nothing here."""
    return [
        f"train_config.{name}: {reason}"
        for name, reason in _WITHOUT_EFFECT.items()
        if config.HasField(name)  # type: ignore[arg-type]  # the stubs want literals
    ]


def build_schedule(config: optimizer_pb2.LearningRate) -> Schedule:
    """The learning-rate schedule; `tandem.config.schedules` says whether its numbers agree.

    Raises:
        ConfigError: none is set.
    """
    kind = config.WhichOneof("learning_rate")
    if kind == "constant_learning_rate":
        return Constant(learning_rate=config.constant_learning_rate.learning_rate)
    if kind == "cosine_decay_learning_rate":
        cosine = config.cosine_decay_learning_rate
        return CosineDecay(
            learning_rate_base=cosine.learning_rate_base,
            total_steps=cosine.total_steps,
            warmup_learning_rate=cosine.warmup_learning_rate,
            warmup_steps=cosine.warmup_steps,
            hold_base_rate_steps=cosine.hold_base_rate_steps,
        )
    if kind == "exponential_decay_learning_rate":
        exponential = config.exponential_decay_learning_rate
        return ExponentialDecay(
            initial_learning_rate=exponential.initial_learning_rate,
            decay_steps=exponential.decay_steps,
            decay_factor=exponential.decay_factor,
            staircase=exponential.staircase,
            burnin_learning_rate=exponential.burnin_learning_rate,
            burnin_steps=exponential.burnin_steps,
            min_learning_rate=exponential.min_learning_rate,
        )
    if kind == "manual_step_learning_rate":
        manual = config.manual_step_learning_rate
        return ManualSteps(
            boundaries=tuple(entry.step for entry in manual.schedule),
            rates=(manual.initial_learning_rate, *(e.learning_rate for e in manual.schedule)),
            warmup=manual.warmup,
        )
    raise ConfigError(
        "train_config.optimizer: no learning_rate is set; expected one of "
        "constant_learning_rate, exponential_decay_learning_rate, manual_step_learning_rate, "
        "cosine_decay_learning_rate"
    )


def build_optimizer_schedule(config: optimizer_pb2.Optimizer) -> Schedule:
    """The schedule inside whichever optimizer is set.

    Raises:
        ConfigError: there is none, or its numbers contradict each other.
    """
    kind = config.WhichOneof("optimizer")
    if kind is None:
        raise ConfigError(
            "train_config.optimizer: none is set; expected one of rms_prop_optimizer, "
            "momentum_optimizer, adam_optimizer"
        )
    for problem in schedule_problems(config):
        raise ConfigError(problem)
    return build_schedule(getattr(config, kind).learning_rate)


def build_optimizer(
    config: optimizer_pb2.Optimizer, variables: Mapping[str, tf.Variable]
) -> Optimizer:
    """The optimizer over ``variables``.

    Raises:
        ConfigError: none is set.
    """
    kind = config.WhichOneof("optimizer")
    if kind == "momentum_optimizer":
        momentum = config.momentum_optimizer
        return Momentum(variables, momentum=momentum.momentum_optimizer_value)
    if kind == "rms_prop_optimizer":
        rms_prop = config.rms_prop_optimizer
        return RmsProp(
            variables,
            momentum=rms_prop.momentum_optimizer_value,
            decay=rms_prop.decay,
            epsilon=rms_prop.epsilon,
        )
    if kind == "adam_optimizer":
        return Adam(variables, epsilon=config.adam_optimizer.epsilon)
    raise ConfigError("train_config.optimizer: none is set")


def trained_variables(
    config: train_pb2.TrainConfig, trainable: Mapping[str, tf.Variable]
) -> dict[str, tf.Variable]:
    """What ``update_trainable_variables`` and ``freeze_variables`` leave of ``trainable``.

    A pattern is matched at the start of a name.

    Raises:
        ConfigError: a pattern is no regular expression or matches nothing, or nothing is left.
    """
    included = _matching(config.update_trainable_variables, trainable, "update_trainable_variables")
    frozen = _matching(config.freeze_variables, trainable, "freeze_variables")
    chosen = included if config.update_trainable_variables else set(trainable)
    left = {name: variable for name, variable in trainable.items() if name in chosen - frozen}
    if not left:
        raise ConfigError(
            "train_config: freeze_variables and update_trainable_variables leave nothing to train "
            f"of {len(trainable)} variables"
        )
    return left


def _matching(patterns: object, names: Mapping[str, tf.Variable], field: str) -> set[str]:
    matched: set[str] = set()
    for pattern in patterns:  # type: ignore[attr-defined]  # a repeated field
        try:
            found = {name for name in names if re.match(pattern, name)}
        except re.error as error:
            raise ConfigError(
                f"train_config.{field}: {pattern!r} is no regular expression: {error}"
            ) from error
        if not found:
            raise ConfigError(
                f"train_config.{field}: {pattern!r} matches none of the {len(names)} trainable "
                f"variables; they look like {next(iter(names))!r}"
            )
        matched |= found
    return matched


def build_state(config: train_pb2.TrainConfig, model: SsdModel) -> TrainingState:
    """The model's variables, optimizer slots and averages, at their initial values.

    Raises:
        ConfigError: a field that is not supported is set, or nothing is left to train.
    """
    for name in _REFUSED:
        if getattr(config, name):
            raise ConfigError(
                f"train_config.{name}: {getattr(config, name)} is not supported by this version; "
                "remove it"
            )
    tensors = checkpoint_tensors(model)
    trainable = {variable.path for variable in model.trainable_variables}
    variables = trained_variables(
        config, {name: variable for name, variable in tensors.items() if name in trainable}
    )
    averages = None
    if config.optimizer.use_moving_average:
        averages = MovingAverages.of(variables, decay=config.optimizer.moving_average_decay)
    return TrainingState(
        model=tensors,
        optimizer=build_optimizer(config.optimizer, variables),
        averages=averages,
    )


def build_step_options(config: train_pb2.TrainConfig) -> StepOptions:
    """Clipping and regularisation."""
    return StepOptions(
        clip_norm=config.gradient_clipping_by_norm,
        add_regularization=config.add_regularization_loss,
    )
