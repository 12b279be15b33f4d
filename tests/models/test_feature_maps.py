"""Extra feature maps: sizes, channels and names."""

from functools import partial

import keras
import pytest
import tensorflow as tf

from tandem.models.backbones.mobilenet_v2 import MobilenetV2, default_params
from tandem.models.feature_maps import SsdFeatureExtractor
from tandem.models.hyperparams.params import BatchNormParams, ConvParams

PARAMS = ConvParams(
    partial(keras.initializers.TruncatedNormal, stddev=0.03),
    regularizer=None,
    activation=tf.nn.relu6,
    batch_norm=BatchNormParams(decay=0.97, epsilon=0.001),
)


def extractor(*, num_maps=6, use_depthwise=False):
    with keras.name_scope("FeatureExtractor"):
        backbone = MobilenetV2(
            depth_multiplier=0.25, min_depth=16, params=default_params(frozen=False)
        )
    return SsdFeatureExtractor(
        backbone,
        base_name="layer_19",
        num_maps=num_maps,
        depth_multiplier=0.25,
        min_depth=16,
        use_depthwise=use_depthwise,
        params=PARAMS,
    )


@pytest.mark.parametrize("image_size", [(65, 96), (64, 64), (33, 300)])
def test_predicted_sizes_are_those_of_the_maps(image_size):
    built = extractor()
    maps = built(tf.zeros((1, *image_size, 3)))
    assert tuple(tuple(m.shape[1:3]) for m in maps) == built.map_sizes(image_size)
    assert tuple(m.shape[3] for m in maps) == built.out_channels == (144, 320, 128, 64, 64, 32)


@pytest.mark.parametrize("num_maps", [1, 2, 4])
def test_fewer_maps_leave_out_the_coarsest(num_maps):
    built = extractor(num_maps=num_maps)
    maps = built(tf.zeros((1, 64, 64, 3)))
    assert len(maps) == len(built.out_channels) == len(built.map_sizes((64, 64))) == num_maps
    assert len(built.extra) == max(0, num_maps - 2)


def test_extra_layers_are_named_by_base_index_and_channels():
    names = {w.path for w in extractor(use_depthwise=True).weights if "weights" in w.name}
    scope = "FeatureExtractor/MobilenetV2/"
    assert scope + "layer_19_1_Conv2d_2_1x1_64/weights" in names
    assert scope + "layer_19_2_Conv2d_2_3x3_s2_128_depthwise/depthwise_weights" in names
    assert scope + "layer_19_2_Conv2d_5_3x3_s2_32/weights" in names


def test_without_depthwise_the_halving_kernel_is_3x3():
    shapes = {w.path: tuple(w.shape) for w in extractor().weights}
    name = "FeatureExtractor/MobilenetV2/layer_19_2_Conv2d_2_3x3_s2_128/weights"
    assert shapes[name] == (3, 3, 64, 128)
