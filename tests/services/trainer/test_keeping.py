"""Rules of `keep_best` against a config and its label maps."""

import pytest
from google.protobuf import text_format

from services.trainer.keeping import refuse_rules_without_effect
from tandem.checkpoints.policies import RetentionPolicy, parse_best_rule
from tandem.errors import ConfigError
from tandem.protos.pipeline_pb2 import TrainEvalPipelineConfig

CATEGORY = "DetectionBoxes_PerformanceByCategory/mAP"


@pytest.fixture
def check(tmp_path):
    """Checks a rule against a config of two sets, one of which has its label map elsewhere."""
    labels = tmp_path / "labels.pbtxt"
    labels.write_text("item { id: 1 name: 'cat' } item { id: 2 name: 'n02' display_name: 'dog' }")

    def run(rule, *, per_category=True):
        text = (
            f"eval_config {{ include_metrics_per_category: {str(per_category).lower()} }}"
            f"eval_input_reader {{ name: 'day' label_map_path: '{labels}' }}"
            "eval_input_reader { name: 'night' label_map_path: '/elsewhere/labels.pbtxt' }"
        )
        config = text_format.Parse(text, TrainEvalPipelineConfig())
        refuse_rules_without_effect(RetentionPolicy(keep_best=(parse_best_rule(rule),)), config)

    return run


@pytest.mark.parametrize(
    "rule",
    ["2", "1:Loss/total_loss", f"1:{CATEGORY}/cat:day", f"1:{CATEGORY}/dog"],
)
def test_a_rule_that_can_take_effect_is_accepted(check, rule):
    check(rule)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (f"1:{CATEGORY}/cats:day", f"did you mean '{CATEGORY}/cat'"),
        (f"1:{CATEGORY}/n02", "which no evaluation by this config has"),
        (f"1:{CATEGORY}/cat:dya", "the config has 'day', 'night'"),
    ],
)
def test_one_that_can_not_is_refused_with_the_nearest(check, rule, message):
    with pytest.raises(ConfigError, match=message):
        check(rule)


def test_categories_need_a_config_that_reports_them(check):
    with pytest.raises(ConfigError, match=r"set eval_config\.include_metrics_per_category"):
        check(f"1:{CATEGORY}/cat", per_category=False)


def test_where_the_label_map_is_elsewhere_a_category_can_not_be_checked(check, caplog):
    check(f"1:{CATEGORY}/bird:night")
    assert "/elsewhere/labels.pbtxt" in caplog.text
