"""Box predictors from ``model.ssd.box_predictor``.

Every field of ``convolutional_box_predictor`` is honoured. ``class_prediction_bias_init`` counts
for depthwise predictors too, where the original's TF1 code forgets it.
"""

from __future__ import annotations

from collections.abc import Sequence

from tandem.errors import ConfigError
from tandem.models.heads.convolutional import ConvolutionalBoxPredictor, HeadParams
from tandem.models.hyperparams.build import build_conv_params
from tandem.models.refusals import unsupported_value
from tandem.protos import box_predictor_pb2

_PATH = "model.ssd.box_predictor"


def build_box_predictor(
    config: box_predictor_pb2.BoxPredictor,
    *,
    in_channels: Sequence[int],
    num_anchors: Sequence[int],
    num_classes: int,
    code_size: int,
    freeze_batch_norm: bool,
) -> ConvolutionalBoxPredictor:
    """The predictor that the config describes.

    Args:
        config: ``model.ssd.box_predictor``.
        in_channels: channels of each feature map.
        num_anchors: anchors at each location of each feature map.
        num_classes: classes without background.
        code_size: numbers that the box coder writes per box.
        freeze_batch_norm: ``model.ssd.freeze_batchnorm``.

    Raises:
        ConfigError: a field or value is not supported.
    """
    kind = config.WhichOneof("box_predictor_oneof")
    if kind != "convolutional_box_predictor":
        raise unsupported_value(_PATH, kind or "", ("convolutional_box_predictor",))
    predictor = config.convolutional_box_predictor
    _check_numbers(predictor, code_size)
    return ConvolutionalBoxPredictor(
        in_channels,
        num_anchors=num_anchors,
        params=_head_params(predictor, num_classes, freeze_batch_norm=freeze_batch_norm),
    )


def _head_params(
    config: box_predictor_pb2.ConvolutionalBoxPredictor,
    num_classes: int,
    *,
    freeze_batch_norm: bool,
) -> HeadParams:
    clip_range = None
    if config.HasField("box_encodings_clip_range"):
        clip = config.box_encodings_clip_range
        clip_range = (clip.min, clip.max)
    return HeadParams(
        num_class_slots=num_classes + 1,
        box_code_size=config.box_code_size,
        kernel_size=config.kernel_size,
        use_depthwise=config.use_depthwise,
        num_layers_before_predictor=config.num_layers_before_predictor,
        min_depth=config.min_depth,
        max_depth=config.max_depth,
        class_bias=config.class_prediction_bias_init,
        dropout_rate=1.0 - config.dropout_keep_probability if config.use_dropout else 0.0,
        sigmoid_scores=config.apply_sigmoid_to_scores,
        box_clip_range=clip_range,
        conv=build_conv_params(
            config.conv_hyperparams,
            path=f"{_PATH}.convolutional_box_predictor.conv_hyperparams",
            freeze_batch_norm=freeze_batch_norm,
        ),
    )


def _check_numbers(config: box_predictor_pb2.ConvolutionalBoxPredictor, code_size: int) -> None:
    path = f"{_PATH}.convolutional_box_predictor"
    if config.box_code_size != code_size:
        raise ConfigError(
            f"{path}.box_code_size: {config.box_code_size}, but the box coder writes {code_size}"
        )
    if config.kernel_size < 1:
        raise ConfigError(f"{path}.kernel_size: {config.kernel_size} is not positive")
    if config.use_depthwise and config.kernel_size == 1:
        raise ConfigError(f"{path}.kernel_size: 1 makes no sense with use_depthwise; set it to 3")
    if config.max_depth and config.min_depth > config.max_depth:
        raise ConfigError(
            f"{path}.min_depth: {config.min_depth} is above max_depth {config.max_depth}"
        )
    if config.use_dropout and not 0.0 < config.dropout_keep_probability <= 1.0:
        raise ConfigError(
            f"{path}.dropout_keep_probability: {config.dropout_keep_probability:g} is not in (0, 1]"
        )
