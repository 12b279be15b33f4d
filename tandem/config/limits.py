"""Values that parse but that nothing can be done with: a batch of 0 images, a threshold of 7.

Only numbers are checked here. Whether a name or a combination is supported, its builder says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from tandem.config.schedules import schedule_problems
from tandem.protos.pipeline_pb2 import TrainEvalPipelineConfig


class _Limit(NamedTuple):
    """What a number has to be; NaN is nothing of the kind."""

    words: str
    holds: Callable[[float], bool]


_POSITIVE_COUNT = _Limit("1 or more", lambda v: v >= 1)
_POSITIVE = _Limit("a number above 0", lambda v: 0 < v < float("inf"))
_NOT_NEGATIVE = _Limit("0 or more", lambda v: 0 <= v < float("inf"))
_PART = _Limit("a number from 0 to 1", lambda v: 0 <= v <= 1)
_DECAY = _Limit("a number from 0 to below 1", lambda v: 0 <= v < 1)

_SSD = "model.ssd"
_HEAD = f"{_SSD}.box_predictor.convolutional_box_predictor"
_ANCHORS = f"{_SSD}.anchor_generator.ssd_anchor_generator"
_NMS = f"{_SSD}.post_processing.batch_non_max_suppression"
_AUGMENTATION = "train_config.data_augmentation_options"
_OPTIMIZER = "train_config.optimizer"

_LIMITS: dict[str, _Limit] = {
    f"{_SSD}.image_resizer.fixed_shape_resizer.height": _POSITIVE_COUNT,
    f"{_SSD}.image_resizer.fixed_shape_resizer.width": _POSITIVE_COUNT,
    f"{_SSD}.feature_extractor.depth_multiplier": _POSITIVE,
    f"{_SSD}.feature_extractor.min_depth": _NOT_NEGATIVE,
    f"{_SSD}.feature_extractor.num_layers": _POSITIVE_COUNT,
    f"{_SSD}.feature_extractor.pad_to_multiple": _POSITIVE_COUNT,
    f"{_SSD}.feature_extractor.conv_hyperparams.batch_norm.decay": _PART,
    f"{_SSD}.feature_extractor.conv_hyperparams.batch_norm.epsilon": _POSITIVE,
    f"{_SSD}.feature_extractor.conv_hyperparams.regularizer.l2_regularizer.weight": _NOT_NEGATIVE,
    f"{_SSD}.box_coder.faster_rcnn_box_coder.y_scale": _POSITIVE,
    f"{_SSD}.box_coder.faster_rcnn_box_coder.x_scale": _POSITIVE,
    f"{_SSD}.box_coder.faster_rcnn_box_coder.height_scale": _POSITIVE,
    f"{_SSD}.box_coder.faster_rcnn_box_coder.width_scale": _POSITIVE,
    f"{_SSD}.matcher.argmax_matcher.matched_threshold": _PART,
    f"{_SSD}.matcher.argmax_matcher.unmatched_threshold": _PART,
    f"{_ANCHORS}.num_layers": _POSITIVE_COUNT,
    f"{_ANCHORS}.min_scale": _POSITIVE,
    f"{_ANCHORS}.max_scale": _POSITIVE,
    f"{_ANCHORS}.scales": _POSITIVE,
    f"{_ANCHORS}.aspect_ratios": _POSITIVE,
    f"{_ANCHORS}.base_anchor_height": _POSITIVE,
    f"{_ANCHORS}.base_anchor_width": _POSITIVE,
    f"{_ANCHORS}.interpolated_scale_aspect_ratio": _NOT_NEGATIVE,
    f"{_HEAD}.num_layers_before_predictor": _NOT_NEGATIVE,
    f"{_HEAD}.dropout_keep_probability": _PART,
    f"{_HEAD}.kernel_size": _POSITIVE_COUNT,
    f"{_HEAD}.conv_hyperparams.batch_norm.decay": _PART,
    f"{_HEAD}.conv_hyperparams.batch_norm.epsilon": _POSITIVE,
    f"{_HEAD}.conv_hyperparams.regularizer.l2_regularizer.weight": _NOT_NEGATIVE,
    f"{_SSD}.loss.classification_weight": _NOT_NEGATIVE,
    f"{_SSD}.loss.localization_weight": _NOT_NEGATIVE,
    f"{_SSD}.loss.classification_loss.weighted_sigmoid_focal.alpha": _PART,
    f"{_SSD}.loss.classification_loss.weighted_sigmoid_focal.gamma": _NOT_NEGATIVE,
    f"{_SSD}.loss.localization_loss.weighted_smooth_l1.delta": _POSITIVE,
    f"{_SSD}.loss.hard_example_miner.num_hard_examples": _NOT_NEGATIVE,
    f"{_SSD}.loss.hard_example_miner.iou_threshold": _PART,
    f"{_SSD}.loss.hard_example_miner.max_negatives_per_positive": _NOT_NEGATIVE,
    f"{_SSD}.loss.hard_example_miner.min_negatives_per_image": _NOT_NEGATIVE,
    f"{_NMS}.iou_threshold": _PART,
    f"{_NMS}.max_detections_per_class": _POSITIVE_COUNT,
    f"{_NMS}.max_total_detections": _POSITIVE_COUNT,
    f"{_NMS}.soft_nms_sigma": _NOT_NEGATIVE,
    f"{_SSD}.post_processing.logit_scale": _POSITIVE,
    "train_config.batch_size": _POSITIVE_COUNT,
    "train_config.max_number_of_boxes": _POSITIVE_COUNT,
    "train_config.gradient_clipping_by_norm": _NOT_NEGATIVE,
    f"{_AUGMENTATION}.random_horizontal_flip.probability": _PART,
    f"{_AUGMENTATION}.ssd_random_crop.operations.min_object_covered": _PART,
    f"{_AUGMENTATION}.ssd_random_crop.operations.random_coef": _PART,
    f"{_OPTIMIZER}.momentum_optimizer.momentum_optimizer_value": _PART,
    f"{_OPTIMIZER}.rms_prop_optimizer.momentum_optimizer_value": _PART,
    f"{_OPTIMIZER}.rms_prop_optimizer.decay": _PART,
    f"{_OPTIMIZER}.rms_prop_optimizer.epsilon": _NOT_NEGATIVE,
    f"{_OPTIMIZER}.adam_optimizer.epsilon": _NOT_NEGATIVE,
    f"{_OPTIMIZER}.moving_average_decay": _DECAY,
    "eval_config.batch_size": _POSITIVE_COUNT,
    **{
        f"{reader}.{name}": _POSITIVE_COUNT
        for reader in ("train_input_reader", "eval_input_reader")
        for name in ("num_readers", "shuffle_buffer_size", "sample_1_of_n_examples")
    },
}


def value_problems(config: TrainEvalPipelineConfig) -> list[str]:
    """What is wrong with the config's numbers, one ``path: expected ..., found ...`` each."""
    problems = [
        f"{path}: expected {limit.words}, found {value:g}"
        for field, limit in _LIMITS.items()
        for path, value in _values(config, field.split("."), "")
        if not limit.holds(value)
    ]
    return [*problems, *_order_problems(config), *schedule_problems(config.train_config.optimizer)]


def _order_problems(config: TrainEvalPipelineConfig) -> Iterator[str]:
    matcher = config.model.ssd.matcher.argmax_matcher
    if matcher.unmatched_threshold > matcher.matched_threshold:
        yield (
            f"{_SSD}.matcher.argmax_matcher: unmatched_threshold {matcher.unmatched_threshold:g} "
            f"is above matched_threshold {matcher.matched_threshold:g}; lower the one"
        )
    averaged = config.train_config.optimizer.use_moving_average
    if config.eval_config.use_moving_averages and not averaged:
        yield (
            "eval_config.use_moving_averages is true, but "
            "train_config.optimizer.use_moving_average is false, so there are none to evaluate; "
            "set both to the same"
        )


def _values(message: Message, names: list[str], path: str) -> Iterator[tuple[str, float]]:
    """The numbers at a path; none within a message that isn't set, several in repeated fields.

    Yields:
        (full path with indices, number); an unset number counts with its default.
    """
    field = message.DESCRIPTOR.fields_by_name[names[0]]
    path = f"{path}.{field.name}" if path else field.name
    value = getattr(message, field.name)
    if field.is_repeated:
        items = [(f"{path}[{index}]", item) for index, item in enumerate(value)]
    elif field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE and not message.HasField(field.name):
        items = []
    else:
        items = [(path, value)]
    for item_path, item in items:
        if len(names) == 1:
            yield item_path, item
        else:
            yield from _values(item, names[1:], item_path)
