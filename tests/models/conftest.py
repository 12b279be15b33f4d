"""A small SSDLite config that builds in about a second."""

import pytest

from tandem.config.text import parse_text
from tandem.models.build import build_model
from tandem.protos import model_pb2

CONV = """
regularizer { l2_regularizer { weight: 4e-05 } }
initializer { truncated_normal_initializer { mean: 0.0 stddev: 0.03 } }
activation: RELU_6
batch_norm { decay: 0.97 scale: true epsilon: 0.001 }
"""

SSD = f"""
ssd {{
  num_classes: 3
  image_resizer {{ fixed_shape_resizer {{ height: 96 width: 64 }} }}
  feature_extractor {{
    type: "ssd_mobiledet_cpu" depth_multiplier: 0.25 min_depth: 16 use_depthwise: true
    conv_hyperparams {{ {CONV} }}
  }}
  box_coder {{ faster_rcnn_box_coder {{ }} }}
  matcher {{ argmax_matcher {{
    matched_threshold: 0.5 unmatched_threshold: 0.5 force_match_for_each_row: true }} }}
  similarity_calculator {{ iou_similarity {{ }} }}
  box_predictor {{ convolutional_box_predictor {{
    kernel_size: 3 use_depthwise: true use_dropout: false class_prediction_bias_init: -4.6
    conv_hyperparams {{ {CONV} }} }} }}
  anchor_generator {{ ssd_anchor_generator {{
    num_layers: 6 min_scale: 0.2 max_scale: 0.95 aspect_ratios: [1.0, 2.0, 0.5] }} }}
  post_processing {{
    batch_non_max_suppression {{ score_threshold: 1e-8 iou_threshold: 0.6
      max_detections_per_class: 10 max_total_detections: 10 }}
    score_converter: SIGMOID }}
  loss {{
    localization_loss {{ weighted_smooth_l1 {{ }} }}
    classification_loss {{ weighted_sigmoid_focal {{ gamma: 2.0 alpha: 0.75 }} }} }}
  encode_background_as_zeros: true
  normalize_loc_loss_by_codesize: true
}}
"""


@pytest.fixture
def ssd_config():
    """Makes the config with other text proto merged into ``model.ssd``."""

    def make(*changes):
        config = parse_text(SSD, model_pb2.DetectionModel, source="test")
        for change in changes:
            text = f"ssd {{ {change} }}"
            config.MergeFrom(parse_text(text, model_pb2.DetectionModel, source="change"))
        return config

    return make


@pytest.fixture(scope="module")
def model():
    return build_model(parse_text(SSD, model_pb2.DetectionModel, source="test"))
