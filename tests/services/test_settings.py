"""Flags, variables and their mistakes."""

import pytest

from services.settings import read_settings
from services.trainer.settings import TrainerSettings
from tandem.errors import ConfigError

REQUIRED = ["--run", "runs/a", "--config", "pipeline.config"]


def read(arguments, environment=None):
    return read_settings(
        TrainerSettings,
        program="tandem-trainer",
        prefix="TANDEM_TRAINER_",
        arguments=arguments,
        environment=environment or {},
    )


def test_defaults_are_those_of_the_original_where_it_has_them():
    settings = read(REQUIRED)
    assert (settings.checkpoint_every_n, settings.max_to_keep, settings.max_unevaluated) == (
        1000,
        7,
        20,
    )
    assert settings.num_train_steps is None
    assert settings.metrics_host == "127.0.0.1"
    assert not settings.takeover


def test_a_flag_wins_over_the_variable_and_the_variable_over_the_default():
    environment = {"TANDEM_TRAINER_CHECKPOINT_EVERY_N": "5", "TANDEM_TRAINER_MAX_TO_KEEP": "3"}
    settings = read([*REQUIRED, "--checkpoint-every-n", "9"], environment)
    assert (settings.checkpoint_every_n, settings.max_to_keep) == (9, 3)


def test_an_override_keeps_its_commas_and_quotes():
    text = 'train_config { fine_tune_checkpoint: "a,b", num_steps: 3 }'
    settings = read([*REQUIRED, "--override", text, "--override", "model {}"])
    assert settings.override == (text, "model {}")


def test_a_misspelt_flag_is_answered_with_the_nearest():
    with pytest.raises(ConfigError, match=r"--checkpoint-every is no flag; did you mean '--check"):
        read([*REQUIRED, "--checkpoint-every", "5"])


def test_a_misspelt_variable_is_answered_with_the_nearest():
    with pytest.raises(ConfigError, match="did you mean 'TANDEM_TRAINER_MAX_TO_KEEP'"):
        read(REQUIRED, {"TANDEM_TRAINER_MAX_TOO_KEEP": "5"})


def test_other_processes_variables_are_left_alone():
    assert read(REQUIRED, {"TANDEM_EVALUATOR_WAIT_INTERVAL": "5", "HOME": "/"})


def test_what_kubernetes_says_of_a_service_of_our_name_is_no_setting():
    assert read(
        REQUIRED,
        {
            "TANDEM_TRAINER_PORT": "tcp://10.0.0.1:80",
            "TANDEM_TRAINER_PORT_80_TCP_ADDR": "10.0.0.1",
            "TANDEM_TRAINER_SERVICE_HOST": "10.0.0.1",
        },
    )


@pytest.mark.parametrize("value", ["inf", "nan", "1e300"])
def test_no_wait_is_endless_or_no_number(value):
    with pytest.raises(ConfigError, match="--heartbeat-interval"):
        read([*REQUIRED, "--heartbeat-interval", value])


def test_a_missing_setting_is_named_with_its_flag_and_its_variable():
    with pytest.raises(ConfigError, match=r"--run \(or TANDEM_TRAINER_RUN\) is required"):
        read(["--config", "x"])


@pytest.mark.parametrize("value", ["0", "-1", "many", "1.5"])
def test_a_bad_number_is_quoted_with_what_was_expected(value):
    with pytest.raises(ConfigError, match=f"--checkpoint-every-n .* is '{value}': "):
        read([*REQUIRED, f"--checkpoint-every-n={value}"])


def test_a_word_that_is_no_flag_is_refused():
    with pytest.raises(ConfigError, match="'runs/b' is no flag"):
        read([*REQUIRED, "runs/b"])


def test_settings_do_not_change():
    with pytest.raises(Exception, match="frozen"):
        read(REQUIRED).run = "other"


def test_help_names_every_setting_and_its_default(capsys):
    with pytest.raises(SystemExit):
        read(["--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert all(f"--{name.replace('_', '-')}" in text for name in TrainerSettings.model_fields)
    assert "(default: 1000)" in text
