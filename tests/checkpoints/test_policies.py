import json

import pytest
from pydantic import ValidationError

from tandem.checkpoints import records
from tandem.checkpoints.attempts import Attempt
from tandem.checkpoints.names import EvalSet
from tandem.checkpoints.policies import (
    MAIN_METRIC,
    BestRule,
    RetentionPolicy,
    evaluated_metrics,
    lower_is_better,
    parse_best_rule,
)
from tandem.errors import ConfigError
from tandem.evaluation.coco_metrics import TAGS, CategoryAp, CocoMetrics
from tests.checkpoints.actors import VAL, claim


def test_the_defaults_are_those_of_the_object_detection_api_and_the_design():
    policy = RetentionPolicy()
    assert (policy.max_to_keep, policy.max_unevaluated) == (7, 20)
    assert policy.keep_every_n_steps is None
    assert policy.best_rules == (BestRule(metric="DetectionBoxes_Precision/mAP", count=1),)


@pytest.mark.parametrize(
    "wrong", [{"max_to_keep": 0}, {"max_unevaluated": -1}, {"keep_every_n_steps": 0}]
)
def test_nonsense_is_refused(wrong):
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        RetentionPolicy(**wrong)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("3", BestRule(count=3)),
        ("2:Loss/total_loss", BestRule(metric="Loss/total_loss", count=2)),
        ("1:Loss/total_loss:val", BestRule(metric="Loss/total_loss", eval_set="val")),
        ("1:Loss/total_loss:", BestRule(metric="Loss/total_loss", eval_set="")),
        ("1:Loss/total_loss:a:b", BestRule(metric="Loss/total_loss", eval_set="a:b")),
        (
            "1:DetectionBoxes_PerformanceByCategory/mAP/cat",
            BestRule(metric="DetectionBoxes_PerformanceByCategory/mAP/cat"),
        ),
    ],
)
def test_a_rule_is_read_from_what_a_person_writes(text, rule):
    assert parse_best_rule(text) == rule


@pytest.mark.parametrize(
    "text", ["", "x", "0", "-1", ":Loss/total_loss", "Loss/total_loss", "9" * 5000, "٣"]
)
def test_a_rule_without_a_count_is_refused_with_an_example(text):
    with pytest.raises(ValueError, match=r"expected COUNT.*as 2:Loss/total_loss"):
        parse_best_rule(text)


def test_a_metric_that_no_evaluation_has_is_answered_with_the_nearest():
    with pytest.raises(ValueError, match="did you mean 'Loss/total_loss'"):
        parse_best_rule("1:Loss/total_los")
    with pytest.raises(ValueError, match="known are DetectionBoxes_Precision/mAP, "):
        parse_best_rule("1:accuracy")


@pytest.mark.parametrize("metric", TAGS.values())
def test_every_coco_metric_is_known_and_better_when_higher(metric):
    assert parse_best_rule(f"1:{metric}").metric == metric
    assert not lower_is_better(metric)


def test_of_a_loss_the_lowest_is_best():
    assert lower_is_better("Loss/total_loss")
    assert not lower_is_better(MAIN_METRIC)


def test_a_rule_for_a_set_that_there_is_not_is_refused_with_the_nearest():
    policy = RetentionPolicy(keep_best=(BestRule(eval_set="nigth"), BestRule()))
    sets = (EvalSet("day", "d"), EvalSet("night", "d"))
    with pytest.raises(ConfigError, match=r"'nigth'.*'day', 'night'; did you mean 'night'"):
        policy.refuse_unknown_sets(sets)
    RetentionPolicy(keep_best=(BestRule(eval_set="day"),)).refuse_unknown_sets(sets)


CATEGORY = "DetectionBoxes_PerformanceByCategory/mAP/"


def _policy(*metrics, **more):
    return RetentionPolicy(keep_best=tuple(BestRule(metric=m, **more) for m in metrics))


def test_the_metrics_of_an_evaluation_are_those_that_it_gives():
    names = {1: "cat", 2: "dog", 4: "cat"}
    per_category = tuple(CategoryAp(n - 1, name, 0.5) for n, name in names.items())
    metrics = CocoMetrics(
        **dict.fromkeys(TAGS, 0.5), per_category=per_category, num_images=1,
        num_groundtruth_boxes=1, num_detections=1,
    )  # fmt: skip
    losses = {name for name in evaluated_metrics(None) if lower_is_better(name)}
    assert set(evaluated_metrics(None)) == {*metrics.by_tag(), *losses}
    assert set(evaluated_metrics(names)) == {*metrics.by_tag(include_categories=True), *losses}


def test_a_metric_that_the_config_does_not_give_is_refused_with_the_nearest():
    day, night = EvalSet("day", "d"), EvalSet("night", "d")
    given = {day: evaluated_metrics({1: "cat"}), night: evaluated_metrics({1: "dog"})}
    _policy(f"{CATEGORY}cat", f"{CATEGORY}dog", "Loss/total_loss").refuse_unknown_metrics(given)
    with pytest.raises(
        ConfigError, match=f"'{CATEGORY}cats', which .*; did you mean '{CATEGORY}cat'"
    ):
        _policy(f"{CATEGORY}cats").refuse_unknown_metrics(given)
    with pytest.raises(ConfigError, match=f"did you mean '{CATEGORY}cat'"):
        _policy(f"{CATEGORY}dog", eval_set="day").refuse_unknown_metrics(given)
    _policy(f"{CATEGORY}dog", eval_set="night").refuse_unknown_metrics(given)


def test_a_category_where_none_is_reported_is_refused_with_the_field_to_set():
    given = {EvalSet("day", "d"): evaluated_metrics(None)}
    with pytest.raises(ConfigError, match=r"set eval_config\.include_metrics_per_category"):
        _policy(f"{CATEGORY}cat").refuse_unknown_metrics(given)


def test_a_set_of_which_the_metrics_are_not_known_is_let_pass():
    _policy(f"{CATEGORY}cat").refuse_unknown_metrics({})


def test_policy_and_eval_sets_are_recorded_with_the_claim(store, clock):
    policy = RetentionPolicy(
        max_to_keep=3, keep_every_n_steps=10, keep_best=(BestRule(count=2, eval_set="val"),)
    )
    claim(store, clock, retention=policy, eval_sets=[VAL])
    read = records.decode(store.get("attempts/0001.json").data, Attempt, name="it")
    assert read.retention == policy
    assert read.eval_sets == (VAL,)
    assert isinstance(read.eval_sets[0], EvalSet)


def test_an_attempt_recorded_before_there_were_policies_is_read_with_the_defaults(store, clock):
    claim(store, clock)
    data = store.get("attempts/0001.json").data
    fields = json.loads(data)
    for name in ("retention", "eval_sets", "checksum"):
        del fields[name]
    text = json.dumps(fields, sort_keys=True, indent=1, ensure_ascii=False) + "\n"
    fields["checksum"] = f"crc32c:{records.crc32c_of(text.encode()):08x}"
    old = json.dumps(fields, sort_keys=True, indent=1, ensure_ascii=False) + "\n"
    read = records.decode(old.encode(), Attempt, name="it")
    assert (read.retention, read.eval_sets) == (RetentionPolicy(), ())
