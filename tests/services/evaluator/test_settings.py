import pytest

from services.evaluator.settings import EvaluatorSettings
from services.settings import read_settings
from tandem.errors import ConfigError


def settings_of(*arguments):
    return read_settings(
        EvaluatorSettings,
        program="tandem-evaluator",
        prefix="TANDEM_EVALUATOR_",
        arguments=["--run", "r", "--config", "c", *arguments],
        environment={},
    )


def test_a_checkpoint_may_wait_half_an_hour_unless_told_otherwise():
    assert settings_of().lag_budget == 1800.0
    assert settings_of("--lag-budget", "90").lag_budget == 90.0


@pytest.mark.parametrize("value", ["0", "-1", "604801", "inf", "soon"])
def test_a_budget_that_makes_no_sense_is_refused(value):
    with pytest.raises(ConfigError, match="--lag-budget"):
        settings_of("--lag-budget", value)
