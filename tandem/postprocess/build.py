"""Post-processing from the `post_processing` message of a pipeline.config."""

from __future__ import annotations

from tandem.errors import ConfigError
from tandem.postprocess.detections import PostProcessor
from tandem.postprocess.nms import NonMaxSuppression
from tandem.postprocess.scores import ScoreConverter, ScoreFunction
from tandem.protos import post_processing_pb2

_SCORE_FUNCTIONS = {
    post_processing_pb2.PostProcessing.IDENTITY: ScoreFunction.IDENTITY,
    post_processing_pb2.PostProcessing.SIGMOID: ScoreFunction.SIGMOID,
    post_processing_pb2.PostProcessing.SOFTMAX: ScoreFunction.SOFTMAX,
}

_OTHER_SUPPRESSIONS = (
    "use_class_agnostic_nms",
    "use_combined_nms",
    "use_partitioned_nms",
    "soft_nms_sigma",
)


def build_post_processor(
    config: post_processing_pb2.PostProcessing, *, path: str = "model.ssd.post_processing"
) -> PostProcessor:
    """Post-processing of a model; `path` is that of the message in the pipeline.config."""
    if config.HasField("calibration_config"):
        raise ConfigError(
            f"{path}.calibration_config is not supported by this version: take it out"
        )
    if config.logit_scale <= 0:
        raise ConfigError(f"{path}.logit_scale is {config.logit_scale:g}; it has to be above 0")
    nms = config.batch_non_max_suppression
    return PostProcessor(
        convert_scores=ScoreConverter(
            _SCORE_FUNCTIONS[config.score_converter], logit_scale=config.logit_scale
        ),
        suppression=_suppression(nms, f"{path}.batch_non_max_suppression"),
        change_coordinate_frame=nms.change_coordinate_frame,
    )


def _suppression(nms: post_processing_pb2.BatchNonMaxSuppression, path: str) -> NonMaxSuppression:
    """Limits of the suppression.

    `use_static_shapes`, `use_cpu_nms` and, without soft suppression, `use_hard_nms` choose between
    ways to the same detections, so any value is fine: shapes are always static here.
    """
    _refuse_other_suppressions(nms, path)
    if not 0 <= nms.iou_threshold <= 1:
        raise ConfigError(
            f"{path}.iou_threshold is {nms.iou_threshold:g}; it has to be from 0 to 1"
        )
    per_class, total = nms.max_detections_per_class, nms.max_total_detections
    if not 1 <= per_class <= total:
        raise ConfigError(
            f"{path}.max_detections_per_class is {per_class}; it has to be at least 1 and at most "
            f"max_total_detections: {total}"
        )
    return NonMaxSuppression(
        score_threshold=nms.score_threshold,
        iou_threshold=nms.iou_threshold,
        max_per_class=per_class,
        max_total=total,
    )


def _refuse_other_suppressions(nms: post_processing_pb2.BatchNonMaxSuppression, path: str) -> None:
    for name in _OTHER_SUPPRESSIONS:
        value = getattr(nms, name)
        if value:
            shown = "true" if value is True else f"{value:g}"
            raise ConfigError(
                f"{path}.{name}: {shown} is not supported; this version has greedy suppression "
                "class by class: take the field out"
            )
    if nms.max_classes_per_detection != 1:
        raise ConfigError(
            f"{path}.max_classes_per_detection is {nms.max_classes_per_detection}; it has to be 1, "
            "for each detection has one class unless use_class_agnostic_nms is set"
        )
