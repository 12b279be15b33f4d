import pytest
from google.protobuf import text_format

from tandem.errors import ConfigError
from tandem.postprocess.build import build_post_processor
from tandem.postprocess.detections import PostProcessor
from tandem.postprocess.nms import NonMaxSuppression
from tandem.postprocess.scores import ScoreConverter, ScoreFunction
from tandem.protos import post_processing_pb2


def build(text):
    return build_post_processor(text_format.Parse(text, post_processing_pb2.PostProcessing()))


def test_every_setting_reaches_its_place():
    assert build("""
        batch_non_max_suppression {
          score_threshold: 0.25 iou_threshold: 0.5 max_detections_per_class: 7
          max_total_detections: 9 change_coordinate_frame: false
        }
        score_converter: SIGMOID
        logit_scale: 2
    """) == PostProcessor(
        convert_scores=ScoreConverter(ScoreFunction.SIGMOID, logit_scale=2.0),
        suppression=NonMaxSuppression(0.25, 0.5, max_per_class=7, max_total=9),
        change_coordinate_frame=False,
    )


def test_defaults_are_those_of_the_proto():
    built = build("")
    assert built.convert_scores == ScoreConverter(ScoreFunction.IDENTITY, logit_scale=1.0)
    assert built.change_coordinate_frame
    assert (built.suppression.max_per_class, built.suppression.max_total) == (100, 100)
    assert built.suppression.iou_threshold == pytest.approx(0.6)


@pytest.mark.parametrize("name", ["use_static_shapes", "use_cpu_nms", "use_hard_nms"])
def test_ways_to_the_same_detections_are_no_setting(name):
    assert build(f"batch_non_max_suppression {{ {name}: true }}") == build("")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("use_class_agnostic_nms: true", "use_class_agnostic_nms: true is not supported"),
        ("use_combined_nms: true", "use_combined_nms: true is not supported"),
        ("use_partitioned_nms: true", "use_partitioned_nms: true is not supported"),
        ("soft_nms_sigma: 0.5", "soft_nms_sigma: 0.5 is not supported"),
        ("max_classes_per_detection: 2", "max_classes_per_detection is 2; it has to be 1"),
        ("iou_threshold: 1.5", "iou_threshold is 1.5; it has to be from 0 to 1"),
        (
            "max_detections_per_class: 200",
            "max_detections_per_class is 200; .*max_total_detections: 100",
        ),
        ("max_detections_per_class: 0", "max_detections_per_class is 0"),
    ],
)
def test_a_suppression_that_cannot_be_built_is_named_with_its_path(text, message):
    path = "model.ssd.post_processing.batch_non_max_suppression."
    with pytest.raises(ConfigError, match=path + message):
        build(f"batch_non_max_suppression {{ {text} }}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("calibration_config {}", "model.ssd.post_processing.calibration_config is not supported"),
        ("logit_scale: 0", "model.ssd.post_processing.logit_scale is 0"),
    ],
)
def test_other_settings_that_cannot_be_built_are_named_with_their_path(text, message):
    with pytest.raises(ConfigError, match=message):
        build(text)
