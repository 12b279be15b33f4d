"""What the user gave is wrong: one clear message, exit code 2, nothing in the run folder."""

import logging
import subprocess
import sys

import pytest
import tensorflow as tf

from services.ctl.demo.run import CONFIG
from services.evaluator.app import run_evaluator
from services.evaluator.settings import EvaluatorSettings
from services.exits import Exit
from services.processes import exit_code_of
from services.signals import StopRequest
from services.trainer.app import run_trainer
from services.trainer.settings import TrainerSettings
from tandem.errors import ConfigError
from tandem.telemetry.logs import LogFields
from tandem.training.states import save_tensors


@pytest.fixture
def start(tmp_path, shapes, caplog):
    """Starts a process's work in this one; returns exit code and message, and the run folder."""
    run = tmp_path / "run"
    files = f"""
    train_input_reader {{ label_map_path: "{shapes.label_map}"
      tf_record_input_reader {{ input_path: "{shapes.train}" }} }}
    eval_input_reader {{ label_map_path: "{shapes.label_map}"
      tf_record_input_reader {{ input_path: "{shapes.held_out}" }} }}
    """

    def begin(process, *overrides, config=CONFIG):
        given = {"run": str(run), "config": str(config), "override": (files, *overrides)}
        stop = StopRequest()

        def work():
            if process == "trainer":
                return run_trainer(TrainerSettings(**given), stop, LogFields())
            return run_evaluator(EvaluatorSettings(**given), stop)

        with caplog.at_level(logging.ERROR):
            code = exit_code_of(work)
        assert not run.exists(), "something was written to the run folder"
        (message,) = [r.getMessage() for r in caplog.records if r.levelno >= logging.ERROR]
        return code, message

    return begin


BOTH = pytest.mark.parametrize("process", ["trainer", "evaluator"])
READER = {"trainer": "train_input_reader", "evaluator": "eval_input_reader"}


@BOTH
def test_a_missing_config_is_named(start, process, tmp_path):
    code, message = start(process, config=tmp_path / "nope.config")
    assert code is Exit.BAD_INPUT
    assert str(tmp_path / "nope.config") in message


@BOTH
def test_a_syntax_error_has_line_and_column(start, process, tmp_path):
    config = tmp_path / "broken.config"
    config.write_text("model {\n  ssd {\n    num_classes: 'three'\n  }\n}\n")
    code, message = start(process, config=config)
    assert code is Exit.BAD_INPUT
    assert f"{config}:3:18" in message


@BOTH
def test_an_unknown_field_is_answered_with_the_nearest(start, process, tmp_path):
    config = tmp_path / "unknown.config"
    config.write_text("model {\n  ssd {\n    num_clases: 3\n  }\n}\n")
    code, message = start(process, config=config)
    assert code is Exit.BAD_INPUT
    assert f"{config}:3:5" in message
    assert "num_clases" in message
    assert "'num_classes'" in message


@BOTH
def test_a_mistake_in_an_override_says_so(start, process):
    code, message = start(process, "train_config { batch_sise: 3 }")
    assert code is Exit.BAD_INPUT
    assert "override" in message
    assert "'batch_size'" in message


@BOTH
def test_a_missing_label_map_is_named(start, process):
    code, message = start(process, f'{READER[process]} {{ label_map_path: "nope.pbtxt" }}')
    assert code is Exit.BAD_INPUT
    assert f"{READER[process]}" in message
    assert "'nope.pbtxt'" in message


@BOTH
def test_missing_records_are_named(start, process, shapes):
    code, message = start(
        process,
        f'{READER[process]} {{ label_map_path: "{shapes.label_map}" '
        'tf_record_input_reader { input_path: "nope-*.record" } }',
    )
    assert code is Exit.BAD_INPUT
    assert "nope-*.record" in message


@BOTH
def test_another_number_of_classes_than_the_label_map_has_names_both(start, process, shapes):
    code, message = start(process, "model { ssd { num_classes: 5 } }")
    assert code is Exit.BAD_INPUT
    assert str(shapes.label_map) in message
    assert "5" in message
    assert "3" in message


def test_a_missing_fine_tune_checkpoint_is_named(start):
    code, message = start("trainer", 'train_config { fine_tune_checkpoint: "nope/model.ckpt" }')
    assert code is Exit.BAD_INPUT
    assert "nope/model.ckpt" in message


def test_a_fine_tune_checkpoint_of_another_backbone_is_refused(start, tmp_path):
    save_tensors({"FeatureExtractor/Other/weights": tf.Variable([1.0])}, tmp_path / "other")
    code, message = start(
        "trainer",
        f'train_config {{ fine_tune_checkpoint: "{tmp_path / "other"}" '
        'fine_tune_checkpoint_type: "detection" }',
    )
    assert code is Exit.BAD_INPUT
    assert "backbone" in message


@BOTH
def test_an_architecture_that_is_not_there_yet_is_named_with_those_that_are(start, process):
    code, message = start(
        process, 'model { ssd { feature_extractor { type: "ssd_resnet50_v1_fpn" } } }'
    )
    assert code is Exit.BAD_INPUT
    assert "model.ssd.feature_extractor.type" in message
    assert "ssd_mobiledet_cpu" in message


@BOTH
def test_a_damaged_record_is_named_before_any_step(start, process, shapes, tmp_path):
    damaged = bytearray(shapes.train.read_bytes())
    damaged[100] ^= 0xFF
    (tmp_path / "damaged.record").write_bytes(damaged)
    code, message = start(
        process,
        f'{READER[process]} {{ label_map_path: "{shapes.label_map}" '
        f'tf_record_input_reader {{ input_path: "{tmp_path / "damaged.record"}" }} }}',
    )
    assert code is Exit.BAD_INPUT
    assert "damaged.record" in message


def test_another_providers_bucket_is_refused_with_what_this_version_can_do():
    expected = r"expected a local path, or gs://BUCKET/PREFIX"
    with pytest.raises(ConfigError, match=expected):
        run_trainer(
            TrainerSettings(run="s3://bucket/run", config=str(CONFIG)), StopRequest(), LogFields()
        )
    with pytest.raises(ConfigError, match=expected):
        run_evaluator(EvaluatorSettings(run="s3://bucket/run", config=str(CONFIG)), StopRequest())


def test_a_folder_with_another_programs_checkpoint_is_refused(tmp_path, shapes, caplog):
    run = tmp_path / "zoo"
    run.mkdir()
    (run / "checkpoint").write_text('model_checkpoint_path: "ckpt-0"\n')
    (run / "ckpt-0.index").write_bytes(b"")
    before = sorted(run.iterdir())
    settings = TrainerSettings(run=str(run), config=str(CONFIG))
    code = exit_code_of(lambda: run_trainer(settings, StopRequest(), LogFields()))
    assert code is Exit.BAD_INPUT
    assert "already has a checkpoint that this run did not write" in caplog.text
    assert sorted(run.iterdir()) == before


@pytest.mark.parametrize("module", ["services.trainer", "services.evaluator"])
def test_a_misspelt_flag_ends_the_process_with_2_before_tensorflow_is_loaded(module):
    found = subprocess.run(
        [sys.executable, "-m", module, "--run", "r", "--confg", "c"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert found.returncode == 2
    assert found.stderr.splitlines() == [
        f"tandem-{module.removeprefix('services.')}: --confg is no flag; did you mean '--config'?"
    ]
