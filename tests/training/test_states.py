"""What a checkpoint holds, and what a resumed run makes of it."""

import hashlib
import json
import logging
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import text_format

from tandem.errors import ConfigError
from tandem.training.build import build_state
from tandem.training.optimizers import Momentum, MovingAverages, RmsProp
from tandem.training.states import TrainingState, load_tensors, resume, save_tensors


def state_of(value, *, optimizer=Momentum, averages=False, shape=(2, 3)):
    weights = {
        "Scope/weights": tf.Variable(tf.fill(shape, value)),
        "Scope/biases": tf.Variable([value]),
    }
    options = {"momentum": 0.9}
    if optimizer is RmsProp:
        options |= {"decay": 0.9, "epsilon": 1.0}
    return TrainingState(
        model=weights,
        optimizer=optimizer(weights, **options),
        averages=MovingAverages.of(weights, decay=0.9) if averages else None,
    )


def step(state, gradient, rate):
    gradients = [tf.fill(v.shape, gradient) for v in state.optimizer.variables.values()]
    state.optimizer.apply(
        gradients, learning_rate=tf.constant(rate), step=state.global_step.read_value()
    )
    state.global_step.assign_add(1)


def test_names_are_those_of_a_tf1_checkpoint(tmp_path):
    save_tensors(state_of(7.0, averages=True).tensors, tmp_path / "ckpt")
    names = {name for name, _ in tf.train.list_variables(str(tmp_path / "ckpt"))}
    assert names == {
        "global_step",
        *(
            f"Scope/{leaf}{slot}"
            for leaf in ("weights", "biases")
            for slot in ("", "/Momentum", "/ExponentialMovingAverage")
        ),
    }


def test_a_round_trip_restores_weights_slots_averages_and_step(tmp_path):
    saved = state_of(7.0, averages=True)
    step(saved, 1.0, 0.1)
    save_tensors(saved.tensors, tmp_path / "ckpt")
    fresh = state_of(0.0, averages=True)
    resume(fresh, tmp_path / "ckpt")
    for name, variable in saved.tensors.items():
        np.testing.assert_array_equal(fresh.tensors[name], variable, err_msg=name)


def test_a_resumed_run_takes_its_rate_from_the_present_config(tmp_path):
    # Case C8: saved at rate 0.1, resumed at 0.001; the momentum buffer stays.
    saved = state_of(1.0)
    step(saved, 1.0, 0.1)
    save_tensors(saved.tensors, tmp_path / "ckpt")
    fresh = state_of(0.0)
    resume(fresh, tmp_path / "ckpt")
    np.testing.assert_allclose(fresh.optimizer.slot_tensors["Scope/biases/Momentum"], [1.0])
    step(fresh, 1.0, 0.001)
    np.testing.assert_allclose(fresh.model["Scope/biases"], [0.9 - 0.001 * 1.9], rtol=1e-6)


def test_another_model_is_refused_with_both_shapes(tmp_path):
    save_tensors(state_of(1.0).tensors, tmp_path / "ckpt")
    with pytest.raises(ConfigError, match=r"Scope/weights: config says \[2, 4\].* \[2, 3\]"):
        resume(state_of(0.0, shape=(2, 4)), tmp_path / "ckpt")


def test_a_missing_variable_is_refused_by_name(tmp_path):
    save_tensors({"other": tf.Variable([1.0])}, tmp_path / "ckpt")
    with pytest.raises(ConfigError, match="wanted: config says"):
        load_tensors({"wanted": tf.Variable([1.0])}, tmp_path / "ckpt")


def test_another_optimizer_starts_its_slots_anew_and_says_so(tmp_path, caplog):
    save_tensors(state_of(1.0).tensors, tmp_path / "ckpt")
    fresh = state_of(0.0, optimizer=RmsProp)
    with caplog.at_level(logging.WARNING):
        resume(fresh, tmp_path / "ckpt")
    assert "4 of 4 optimizer slots and averages" in caplog.text
    np.testing.assert_array_equal(fresh.model["Scope/biases"], [1.0])


def test_averages_that_were_not_saved_start_as_the_restored_weights(tmp_path):
    save_tensors(state_of(5.0).tensors, tmp_path / "ckpt")
    fresh = state_of(0.0, averages=True)
    resume(fresh, tmp_path / "ckpt")
    np.testing.assert_array_equal(fresh.averages.averages["Scope/biases"], [5.0])


IN_A_FRESH_PROCESS = """
import hashlib, json, sys
from google.protobuf import text_format
from tandem.models.build import build_model
from tandem.protos.pipeline_pb2 import TrainEvalPipelineConfig
from tandem.training.build import build_state
from tandem.training.states import resume
config = text_format.Parse(open(sys.argv[1]).read(), TrainEvalPipelineConfig())
model = build_model(config.model)
state = build_state(config.train_config, model)
resume(state, sys.argv[2])
digests = {w.path: hashlib.sha256(w.numpy().tobytes()).hexdigest() for w in model.weights}
json.dump(digests, open(sys.argv[3], "w"))
"""


def test_every_weight_of_a_model_survives_into_a_fresh_process(tmp_path, small_model, small_config):
    # Keras 3 leaves layers that are kept in lists out of an object checkpoint, silently.
    random = np.random.default_rng(3)
    for weight in small_model.weights:
        weight.assign(random.normal(size=weight.shape))
    state = build_state(small_config.train_config, small_model)
    save_tensors(state.tensors, tmp_path / "ckpt")
    config = tmp_path / "pipeline.config"
    config.write_text(text_format.MessageToString(small_config))
    out = tmp_path / "digests.json"
    subprocess.run(
        [sys.executable, "-c", IN_A_FRESH_PROCESS, config, tmp_path / "ckpt", out], check=True
    )
    assert json.loads(out.read_text()) == {
        weight.path: hashlib.sha256(weight.numpy().tobytes()).hexdigest()
        for weight in small_model.weights
    }
