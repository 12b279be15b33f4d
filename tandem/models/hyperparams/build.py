"""Convolution settings from a ``hyperparams`` message.

Honoured: regularizer, initializer, activation, batch_norm. Without effect, since TF1 models do so
whatever it says: ``regularize_depthwise`` (the original's TF1 models always regularise depthwise
kernels of layers that take this message). All else is refused.
"""

from __future__ import annotations

from functools import partial

import keras
import tensorflow as tf

from tandem.errors import ConfigError
from tandem.models.hyperparams.params import (
    L1,
    L2,
    Activation,
    BatchNormParams,
    ConvParams,
    InitializerFactory,
)
from tandem.models.refusals import refuse_other_fields, unsupported_value
from tandem.protos import hyperparams_pb2

_ACTIVATIONS: dict[hyperparams_pb2.Hyperparams.Activation.ValueType, Activation | None] = {
    hyperparams_pb2.Hyperparams.NONE: None,
    hyperparams_pb2.Hyperparams.RELU: tf.nn.relu,
    hyperparams_pb2.Hyperparams.RELU_6: tf.nn.relu6,
    hyperparams_pb2.Hyperparams.SWISH: tf.nn.silu,
}

_FAN_MODES = {
    hyperparams_pb2.VarianceScalingInitializer.FAN_IN: "fan_in",
    hyperparams_pb2.VarianceScalingInitializer.FAN_OUT: "fan_out",
    hyperparams_pb2.VarianceScalingInitializer.FAN_AVG: "fan_avg",
}


def build_conv_params(
    config: hyperparams_pb2.Hyperparams, *, path: str, freeze_batch_norm: bool
) -> ConvParams:
    """Settings of the convolutions that take this message.

    Args:
        config: the message.
        path: of the message in the pipeline.config, for errors.
        freeze_batch_norm: use moving statistics in training, as ``batch_norm.train: false`` does.

    Raises:
        ConfigError: a field or value is not supported.
    """
    known = ("regularizer", "initializer", "activation", "batch_norm", "regularize_depthwise")
    refuse_other_fields(config, path=path, known=known)
    if config.activation not in _ACTIVATIONS:
        name = hyperparams_pb2.Hyperparams.Activation.Name
        supported = [name(value) for value in _ACTIVATIONS]
        raise unsupported_value(f"{path}.activation", name(config.activation), supported)
    batch_norm = None
    if config.HasField("batch_norm"):
        batch_norm = _batch_norm(config.batch_norm, path=path, freeze=freeze_batch_norm)
    return ConvParams(
        initializer=_initializer(config.initializer, path=f"{path}.initializer"),
        regularizer=_regularizer(config.regularizer, path=f"{path}.regularizer"),
        activation=_ACTIVATIONS[config.activation],
        batch_norm=batch_norm,
    )


def _batch_norm(config: hyperparams_pb2.BatchNorm, *, path: str, freeze: bool) -> BatchNormParams:
    if not 0.0 <= config.decay <= 1.0:
        raise ConfigError(f"{path}.batch_norm.decay: {config.decay:g} is not between 0 and 1")
    # Below it the fused kernel would use a larger epsilon of its own on GPUs.
    if config.epsilon < 1.001e-5:
        raise ConfigError(
            f"{path}.batch_norm.epsilon: {config.epsilon:g} is below 1.001e-5, the least that "
            "TensorFlow's fused batch norm takes"
        )
    return BatchNormParams(
        decay=config.decay,
        epsilon=config.epsilon,
        scale=config.scale,
        center=config.center,
        frozen=freeze or not config.train,
    )


def _initializer(config: hyperparams_pb2.Initializer, *, path: str) -> InitializerFactory:
    kind = config.WhichOneof("initializer_oneof")
    if kind == "truncated_normal_initializer":
        normal = config.truncated_normal_initializer
        return partial(keras.initializers.TruncatedNormal, mean=normal.mean, stddev=normal.stddev)
    if kind == "random_normal_initializer":
        gauss = config.random_normal_initializer
        return partial(keras.initializers.RandomNormal, mean=gauss.mean, stddev=gauss.stddev)
    if kind == "variance_scaling_initializer":
        scaling = config.variance_scaling_initializer
        return partial(
            keras.initializers.VarianceScaling,
            scale=scaling.factor,
            mode=_FAN_MODES[scaling.mode],
            distribution="uniform" if scaling.uniform else "truncated_normal",
        )
    if kind is None:
        # TF-Slim's own default where the config has none.
        return keras.initializers.GlorotUniform
    supported = ("truncated_normal_initializer", "random_normal_initializer")
    raise unsupported_value(path, kind, (*supported, "variance_scaling_initializer"))


def _regularizer(
    config: hyperparams_pb2.Regularizer, *, path: str
) -> keras.regularizers.Regularizer | None:
    kind = config.WhichOneof("regularizer_oneof")
    if kind is None:
        return None
    if kind == "l2_regularizer":
        return L2(config.l2_regularizer.weight)
    if kind == "l1_regularizer":
        return L1(config.l1_regularizer.weight)
    raise unsupported_value(path, kind, ("l1_regularizer", "l2_regularizer"))
