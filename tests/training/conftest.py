"""A small SSD and a batch for it."""

import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import text_format

from services.ctl.demo.run import CONFIG
from tandem import fields
from tandem.models.build import build_model
from tandem.protos.pipeline_pb2 import TrainEvalPipelineConfig

SMALL = """
model {
  ssd {
    image_resizer { fixed_shape_resizer { height: 64 width: 64 } }
    feature_extractor {
      depth_multiplier: 0.1
    }
  }
}
"""


@pytest.fixture(scope="session")
def small_config():
    config = text_format.Parse(CONFIG.read_text(), TrainEvalPipelineConfig())
    return text_format.Merge(SMALL, config)


@pytest.fixture
def small_model(small_config):
    tf.keras.utils.set_random_seed(1)
    return build_model(small_config.model)


@pytest.fixture(scope="session")
def batch():
    """Two images of 64 x 64, one box of three rows of padding each, records named."""
    random = np.random.default_rng(0)
    boxes = np.zeros((2, 4, 4), np.float32)
    boxes[:, 0] = [[0.1, 0.2, 0.6, 0.7], [0.3, 0.3, 0.9, 0.8]]
    weights = np.zeros((2, 4), np.float32)
    weights[:, 0] = 1.0
    return {
        fields.IMAGE: tf.constant(random.uniform(0, 255, (2, 64, 64, 3)), tf.float32),
        fields.BOXES: tf.constant(boxes),
        fields.CLASSES: tf.constant([[0, 0, 0, 0], [2, 0, 0, 0]]),
        fields.WEIGHTS: tf.constant(weights),
        fields.NUM_BOXES: tf.constant([1, 1]),
        fields.RECORD: tf.constant(["train.record:3", "train.record:7"]),
        fields.SOURCE_ID: tf.constant(["a.jpg", ""]),
    }
