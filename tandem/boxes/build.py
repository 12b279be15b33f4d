"""Box parts from their messages in a pipeline.config."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import tensorflow as tf
from google.protobuf.message import Message

from tandem.boxes.anchors import SsdAnchorGenerator, ssd_layers
from tandem.boxes.coders import FasterRcnnBoxCoder
from tandem.boxes.geometry import intersection_over_union
from tandem.boxes.matchers import ArgmaxMatcher
from tandem.errors import ConfigError
from tandem.protos import (
    anchor_generator_pb2,
    argmax_matcher_pb2,
    box_coder_pb2,
    matcher_pb2,
    region_similarity_calculator_pb2,
    ssd_anchor_generator_pb2,
)


def require_choice(config: Message, oneof: str, *, path: str, supported: Sequence[str]) -> str:
    """Name of the field that is set in a oneof, which has to be one that this version supports.

    Args:
        config: message with the oneof.
        oneof: its name in the .proto file.
        path: of the message from the top of the pipeline.config, for the error.
        supported: field names.
    """
    chosen = config.WhichOneof(oneof)
    if chosen in supported:
        return str(chosen)
    known = ", ".join(f"{path}.{name}" for name in supported)
    got = f"{path}.{chosen} is not supported" if chosen else f"{path} is not set"
    raise ConfigError(f"{got}; this version has {known}: set that in the pipeline.config")


def build_box_coder(
    config: box_coder_pb2.BoxCoder, *, path: str = "model.ssd.box_coder"
) -> FasterRcnnBoxCoder:
    """The box coder of a model; `path` is that of the message in the pipeline.config."""
    require_choice(config, "box_coder_oneof", path=path, supported=["faster_rcnn_box_coder"])
    coder = config.faster_rcnn_box_coder
    path = f"{path}.faster_rcnn_box_coder"
    for name in ("y_scale", "x_scale", "height_scale", "width_scale"):
        _require(getattr(coder, name) > 0, f"{path}.{name}", getattr(coder, name), "above 0")
    return FasterRcnnBoxCoder(
        y_scale=coder.y_scale,
        x_scale=coder.x_scale,
        height_scale=coder.height_scale,
        width_scale=coder.width_scale,
    )


def build_anchor_generator(
    config: anchor_generator_pb2.AnchorGenerator, *, path: str = "model.ssd.anchor_generator"
) -> SsdAnchorGenerator:
    """The anchor generator of an SSD; `path` is that of the message in the pipeline.config."""
    require_choice(config, "anchor_generator_oneof", path=path, supported=["ssd_anchor_generator"])
    ssd, path = config.ssd_anchor_generator, f"{path}.ssd_anchor_generator"
    _check_ssd_anchors(ssd, path)
    return SsdAnchorGenerator(
        layers=ssd_layers(
            ssd.num_layers,
            min_scale=ssd.min_scale,
            max_scale=ssd.max_scale,
            scales=ssd.scales,
            aspect_ratios=ssd.aspect_ratios,
            interpolated_scale_aspect_ratio=ssd.interpolated_scale_aspect_ratio,
            reduce_boxes_in_lowest_layer=ssd.reduce_boxes_in_lowest_layer,
        ),
        base_size=(ssd.base_anchor_height, ssd.base_anchor_width),
        strides=tuple(zip(ssd.height_stride, ssd.width_stride, strict=True)) or None,
        offsets=tuple(zip(ssd.height_offset, ssd.width_offset, strict=True)) or None,
    )


def build_matcher(config: matcher_pb2.Matcher, *, path: str = "model.ssd.matcher") -> ArgmaxMatcher:
    """The matcher of a model; `path` is that of the message in the pipeline.config.

    `use_matmul_gather` chooses between two ways to the same numbers, so either value is fine.
    """
    require_choice(config, "matcher_oneof", path=path, supported=["argmax_matcher"])
    argmax = config.argmax_matcher
    _check_thresholds(argmax, f"{path}.argmax_matcher")
    return ArgmaxMatcher(
        matched_threshold=None if argmax.ignore_thresholds else argmax.matched_threshold,
        unmatched_threshold=argmax.unmatched_threshold,
        negatives_lower_than_unmatched=argmax.negatives_lower_than_unmatched,
        force_match_for_each_row=argmax.force_match_for_each_row,
    )


def build_similarity(
    config: region_similarity_calculator_pb2.RegionSimilarityCalculator,
    *,
    path: str = "model.ssd.similarity_calculator",
) -> Callable[[tf.Tensor, tf.Tensor], tf.Tensor]:
    """The similarity of boxes [..., N, 4] and anchors [..., M, 4] to [..., N, M]."""
    require_choice(config, "region_similarity", path=path, supported=["iou_similarity"])
    return intersection_over_union


def _check_ssd_anchors(ssd: ssd_anchor_generator_pb2.SsdAnchorGenerator, path: str) -> None:
    layers = ssd.num_layers
    least = 1 if ssd.scales else 2
    _require(
        layers >= least, f"{path}.num_layers", layers, "at least 2, or 1 when scales are given"
    )
    if ssd.scales:
        _require(
            len(ssd.scales) >= layers,
            f"{path}.scales",
            f"{len(ssd.scales)} values",
            f"one for each of num_layers: {layers}",
        )
    _require(
        all(ratio > 0 for ratio in ssd.aspect_ratios),
        f"{path}.aspect_ratios",
        list(ssd.aspect_ratios),
        "all above 0",
    )
    _require(
        bool(ssd.aspect_ratios) or ssd.interpolated_scale_aspect_ratio > 0,
        f"{path}.aspect_ratios",
        "empty",
        "at least one, or interpolated_scale_aspect_ratio above 0: else there are no anchors",
    )
    for kind in ("stride", "offset"):
        counts = [len(getattr(ssd, f"{side}_{kind}")) for side in ("height", "width")]
        _require(
            counts in ([0, 0], [layers, layers]),
            f"{path}.height_{kind} and width_{kind}",
            f"{counts[0]} and {counts[1]} values",
            f"none, or one each for each of num_layers: {layers}",
        )


def _check_thresholds(argmax: argmax_matcher_pb2.ArgMaxMatcher, path: str) -> None:
    if argmax.ignore_thresholds:
        return
    matched, unmatched = argmax.matched_threshold, argmax.unmatched_threshold
    _require(
        unmatched <= matched,
        f"{path}.unmatched_threshold",
        unmatched,
        f"at most matched_threshold: {matched:g}",
    )
    _require(
        argmax.negatives_lower_than_unmatched or unmatched < matched,
        f"{path}.unmatched_threshold",
        unmatched,
        f"below matched_threshold: {matched:g}, since negatives_lower_than_unmatched: false puts "
        "the background between the two",
    )


def _require(holds: bool, path: str, got: object, expected: str) -> None:
    if not holds:
        shown = f"{got:g}" if isinstance(got, float) else got
        raise ConfigError(f"{path} is {shown}; it has to be {expected}")
