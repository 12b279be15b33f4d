"""Convolution settings from text protos."""

import numpy as np
import pytest
import tensorflow as tf

from tandem.config.text import parse_text
from tandem.errors import ConfigError
from tandem.models.hyperparams.build import build_conv_params
from tandem.protos import hyperparams_pb2


def build(text, *, freeze_batch_norm=False):
    config = parse_text(text, hyperparams_pb2.Hyperparams, source="test")
    return build_conv_params(config, path="x.conv_hyperparams", freeze_batch_norm=freeze_batch_norm)


def test_the_defaults_are_those_of_the_schema():
    params = build("batch_norm { }")
    assert params.activation is tf.nn.relu
    assert params.regularizer is None
    assert params.batch_norm.decay == pytest.approx(0.999)
    assert params.batch_norm.epsilon == pytest.approx(0.001)
    assert (params.batch_norm.scale, params.batch_norm.center) == (False, True)
    assert not params.batch_norm.frozen


def test_without_the_message_there_is_no_batch_norm():
    assert build("activation: NONE").batch_norm is None
    assert build("activation: NONE").activation is None


@pytest.mark.parametrize(
    ("text", "freeze"), [("batch_norm { train: false }", False), ("batch_norm { }", True)]
)
def test_either_setting_freezes_the_statistics(text, freeze):
    assert build(text, freeze_batch_norm=freeze).batch_norm.frozen


def test_l2_is_half_the_sum_of_squares_and_l1_the_sum_of_sizes():
    weights = tf.constant([1.0, -3.0])
    l2 = build("regularizer { l2_regularizer { weight: 0.5 } }").regularizer
    l1 = build("regularizer { l1_regularizer { weight: 0.5 } }").regularizer
    assert float(l2(weights)) == pytest.approx(0.5 * 10.0 / 2.0)
    assert float(l1(weights)) == pytest.approx(0.5 * 4.0)


@pytest.mark.parametrize(
    ("text", "stddev"),
    [
        ("random_normal_initializer { stddev: 0.03 }", 0.03),
        ("truncated_normal_initializer { stddev: 0.03 }", 0.03 * 0.8796),
        ("variance_scaling_initializer { factor: 2.0 mode: FAN_IN }", (2.0 / 90.0) ** 0.5),
        ("variance_scaling_initializer { factor: 2.0 mode: FAN_OUT }", (2.0 / 180.0) ** 0.5),
        ("variance_scaling_initializer { factor: 2.0 mode: FAN_AVG uniform: true }",
         (2.0 / 135.0) ** 0.5),
    ],
)  # fmt: skip
def test_initialisers_have_the_configured_spread(text, stddev):
    values = build(f"initializer {{ {text} }}").initializer()((3, 3, 10, 20)).numpy()
    assert np.std(values) == pytest.approx(stddev, rel=0.06)
    assert np.mean(values) == pytest.approx(0.0, abs=0.1 * stddev)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("op: FC", r"x\.conv_hyperparams\.op: 2 is not supported"),
        ("group_norm { }", r"x\.conv_hyperparams\.group_norm: not supported"),
        ("sync_batch_norm { }", r"x\.conv_hyperparams\.sync_batch_norm: not supported"),
        ("force_use_bias: true", r"force_use_bias: true is not supported.* set it to false"),
        ("batch_norm { decay: 1.5 }", r"batch_norm\.decay: 1\.5 is not between 0 and 1"),
        ("batch_norm { epsilon: 0 }", r"batch_norm\.epsilon: 0 is below 1\.001e-5"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(text, message):
    with pytest.raises(ConfigError, match=message):
        build(text)


@pytest.mark.parametrize(
    "text", ["op: CONV", "force_use_bias: false", "regularize_depthwise: true"]
)
def test_defaults_and_fields_without_effect_are_accepted(text):
    build(text)
