import numpy as np
import pytest
from google.protobuf import text_format

from tandem.boxes import build
from tandem.boxes.coders import FasterRcnnBoxCoder
from tandem.boxes.geometry import intersection_over_union
from tandem.boxes.matchers import ArgmaxMatcher
from tandem.errors import ConfigError
from tandem.protos import (
    anchor_generator_pb2,
    box_coder_pb2,
    matcher_pb2,
    region_similarity_calculator_pb2,
)


def box_coder(text):
    return build.build_box_coder(text_format.Parse(text, box_coder_pb2.BoxCoder()))


def anchor_generator(text):
    config = text_format.Parse(text, anchor_generator_pb2.AnchorGenerator())
    return build.build_anchor_generator(config)


def matcher(text):
    return build.build_matcher(text_format.Parse(text, matcher_pb2.Matcher()))


def similarity(text):
    config = region_similarity_calculator_pb2.RegionSimilarityCalculator()
    return build.build_similarity(text_format.Parse(text, config))


def test_unset_scales_of_the_box_coder_have_the_defaults_of_the_proto():
    assert box_coder("faster_rcnn_box_coder { y_scale: 2 }") == FasterRcnnBoxCoder(2.0, 10, 5, 5)


def test_a_matcher_has_its_own_settings():
    assert matcher("argmax_matcher {}") == ArgmaxMatcher(
        matched_threshold=0.5,
        unmatched_threshold=0.5,
        negatives_lower_than_unmatched=True,
        force_match_for_each_row=False,
    )
    built = matcher("argmax_matcher { ignore_thresholds: true force_match_for_each_row: true }")
    assert built.matched_threshold is None
    assert built.force_match_for_each_row


def test_the_way_to_gather_is_no_setting():
    assert matcher("argmax_matcher { use_matmul_gather: true }") == matcher("argmax_matcher {}")


def test_similarity_is_intersection_over_union():
    assert similarity("iou_similarity {}") is intersection_over_union


@pytest.mark.parametrize(
    ("builder", "text", "message"),
    [
        (box_coder, "", "model.ssd.box_coder is not set.*box_coder.faster_rcnn_box_coder"),
        (box_coder, "square_box_coder {}", "box_coder.square_box_coder is not supported"),
        (box_coder, "faster_rcnn_box_coder { x_scale: 0 }", "x_scale is 0; it has to be above 0"),
        (matcher, "bipartite_matcher {}", "matcher.bipartite_matcher is not supported"),
        (
            matcher,
            "argmax_matcher { matched_threshold: 0.3 unmatched_threshold: 0.6 }",
            "model.ssd.matcher.argmax_matcher.unmatched_threshold is 0.6.*at most.*0.3",
        ),
        (
            matcher,
            "argmax_matcher { negatives_lower_than_unmatched: false }",
            "unmatched_threshold is 0.5.*below matched_threshold: 0.5",
        ),
        (similarity, "ioa_similarity {}", "similarity_calculator.ioa_similarity is not supported"),
        (
            anchor_generator,
            "multiscale_anchor_generator {}",
            "multiscale_anchor_generator is not supported; this version has "
            "model.ssd.anchor_generator.ssd_anchor_generator",
        ),
        (anchor_generator, "ssd_anchor_generator { num_layers: 1 aspect_ratios: 1 }", "num_layers"),
        (
            anchor_generator,
            "ssd_anchor_generator { num_layers: 3 scales: [0.1, 0.2] aspect_ratios: 1 }",
            "scales is 2 values; it has to be one for each of num_layers: 3",
        ),
        (anchor_generator, "ssd_anchor_generator { aspect_ratios: [1, -2] }", "all above 0"),
        (
            anchor_generator,
            "ssd_anchor_generator { interpolated_scale_aspect_ratio: 0 }",
            "aspect_ratios is empty",
        ),
        (
            anchor_generator,
            "ssd_anchor_generator { num_layers: 2 aspect_ratios: 1 height_stride: [8, 16] }",
            "height_stride and width_stride is 2 and 0 values",
        ),
    ],
)
def test_what_cannot_be_built_is_named_with_its_path(builder, text, message):
    with pytest.raises(ConfigError, match=message):
        builder(text)


@pytest.mark.parametrize(
    "name", ["default6", "nonsquare", "noreduce_interp0", "scales_strides_offsets"]
)
def test_anchors_equal_those_of_the_original(name, components):
    case = components.cases[f"anchors/ssd_{name}"]
    generator = anchor_generator(case["config"])
    assert list(generator.num_anchors_per_location) == case["num_anchors_per_location"]
    shapes = [tuple(shape) for shape in case["feature_map_shapes"]]
    anchors = generator.generate(shapes, image_size=tuple(case["image_hw"]))
    np.testing.assert_allclose(anchors, components.arrays[case["out"]], atol=1e-6)
