"""SSD feature extractors from ``model.ssd.feature_extractor``.

Honoured: type, depth_multiplier, min_depth, conv_hyperparams, use_depthwise, num_layers,
override_base_feature_extractor_hyperparams (MobileNet V2; MobileDet's backbone fixes its own).
``pad_to_multiple`` is accepted where the image size makes it do nothing. All else is refused.
"""

from __future__ import annotations

import logging
from dataclasses import replace

import keras
import tensorflow as tf

from tandem.errors import ConfigError
from tandem.models.backbones.mobiledet import MobileDetCpu
from tandem.models.backbones.mobilenet_v2 import (
    MobilenetV2,
    MobilenetV2Params,
    default_params,
)
from tandem.models.feature_maps import EXTRA_DEPTHS, SsdFeatureExtractor
from tandem.models.hyperparams.build import build_conv_params
from tandem.models.hyperparams.params import BatchNormParams, ConvParams
from tandem.models.refusals import refuse_other_fields, unsupported_value
from tandem.protos import ssd_pb2

logger = logging.getLogger(__name__)

_PATH = "model.ssd.feature_extractor"

_BASE_NAMES = {"ssd_mobiledet_cpu": "C5", "ssd_mobilenet_v2": "layer_19"}
"""Supported types, and the original's name of the map that the extra maps begin at."""

_HONOURED = (
    "type",
    "depth_multiplier",
    "min_depth",
    "conv_hyperparams",
    "use_depthwise",
    "num_layers",
    "override_base_feature_extractor_hyperparams",
    "pad_to_multiple",
)


def build_feature_extractor(
    config: ssd_pb2.SsdFeatureExtractor, *, image_size: tuple[int, int], freeze_batch_norm: bool
) -> SsdFeatureExtractor:
    """The feature extractor that the config describes.

    Args:
        config: ``model.ssd.feature_extractor``.
        image_size: (height, width) of the model's input.
        freeze_batch_norm: ``model.ssd.freeze_batchnorm``.

    Raises:
        ConfigError: a field or value is not supported.
    """
    if config.type not in _BASE_NAMES:
        raise unsupported_value(f"{_PATH}.type", config.type, _BASE_NAMES)
    refuse_other_fields(config, path=_PATH, known=_HONOURED)
    _check_numbers(config, image_size)
    params = build_conv_params(
        config.conv_hyperparams,
        path=f"{_PATH}.conv_hyperparams",
        freeze_batch_norm=freeze_batch_norm,
    )
    with keras.name_scope("FeatureExtractor"):
        backbone = _backbone(config, params, freeze_batch_norm=freeze_batch_norm)
    return SsdFeatureExtractor(
        backbone,
        base_name=_BASE_NAMES[config.type],
        num_maps=config.num_layers,
        depth_multiplier=config.depth_multiplier,
        min_depth=config.min_depth,
        use_depthwise=config.use_depthwise,
        params=params,
    )


def _check_numbers(config: ssd_pb2.SsdFeatureExtractor, image_size: tuple[int, int]) -> None:
    most = 2 + len(EXTRA_DEPTHS)
    if not 1 <= config.num_layers <= most:
        raise ConfigError(f"{_PATH}.num_layers: {config.num_layers} is not between 1 and {most}")
    if config.depth_multiplier <= 0:
        raise ConfigError(f"{_PATH}.depth_multiplier: {config.depth_multiplier:g} is not positive")
    if min(image_size) < 33:
        raise ConfigError(
            f"model.ssd.image_resizer: {image_size[0]}x{image_size[1]} is too small for "
            f"{_PATH}.type {config.type!r}; at least 33x33 is needed"
        )
    multiple = max(1, config.pad_to_multiple)
    if any(side % multiple for side in image_size):
        raise ConfigError(
            f"{_PATH}.pad_to_multiple: {multiple} would pad the {image_size[0]}x{image_size[1]} "
            "image, which this version does not do; resize to a multiple of it"
        )


def _backbone(
    config: ssd_pb2.SsdFeatureExtractor, params: ConvParams, *, freeze_batch_norm: bool
) -> keras.layers.Layer:
    overrides = config.override_base_feature_extractor_hyperparams
    if config.type == "ssd_mobiledet_cpu":
        if overrides:
            raise ConfigError(
                f"{_PATH}.override_base_feature_extractor_hyperparams: true has no effect on "
                "ssd_mobiledet_cpu, whose backbone fixes its own; set it to false"
            )
        if freeze_batch_norm:
            logger.warning(
                "model.ssd.freeze_batchnorm freezes the predictor and the extra feature maps of "
                "ssd_mobiledet_cpu; its backbone keeps batch statistics, as in the original"
            )
        return MobileDetCpu(depth_multiplier=config.depth_multiplier)
    return MobilenetV2(
        depth_multiplier=config.depth_multiplier,
        min_depth=config.min_depth,
        params=_overridden(params) if overrides else default_params(frozen=freeze_batch_norm),
    )


def _overridden(params: ConvParams) -> MobilenetV2Params:
    # The architecture itself says relu6, and batch norm with scale and offset.
    norm = params.batch_norm or BatchNormParams(decay=0.9997, epsilon=0.001)
    conv = replace(
        params, activation=tf.nn.relu6, batch_norm=replace(norm, scale=True, center=True)
    )
    return MobilenetV2Params(conv=conv, depthwise=conv)
