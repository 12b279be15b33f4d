"""A mistake in a rule is noticed by the scenarios: threshold, comparison, selector or `for`."""

import re

import pytest

from tests.deploy.alert_mutants import derived, mutants
from tests.deploy.alerting import (
    Scenario,
    alerts,
    as_promtool_test,
    fleet_rules,
    nothing_fires,
    of_others,
    promtool_test,
    rules_of,
    run_rules,
    scenarios,
)
from tests.deploy.rendering import NEEDS_TOOLS

pytestmark = [NEEDS_TOOLS, pytest.mark.slow]

_NAMES = (
    *("tandem:run_active", "tandem:ckpt_age_seconds", "tandem:eval_lag_seconds"),
    *("tandem:gcs_error_ratio5m", "tandem:gcs_error_ratio30m"),
    *("tandem:gcs_error_ratio1h", "tandem:gcs_error_ratio6h"),
    *("tandem:preemptions", "tandem:lost_seconds", "tandem:goodput6h"),
    *("TandemTrainStalled", "TandemCheckpointStale", "TandemCheckpointCorrupt"),
    *("TandemSaveFailed", "TandemTrainerFailed", "TandemTrainerNotStarted"),
    *("TandemEvalLagHigh", "TandemEvalStuck", "TandemEvaluatorSilent", "TandemEvaluatorCrashLoop"),
    *("TandemEvalFailingSameCheckpoint", "TandemRunEndedWithoutFinalEval"),
    *("TandemMetricRegression", "TandemGcsErrorFastBurn", "TandemGcsErrorSlowBurn"),
    *("TandemPreemptionStorm", "TandemPodUnschedulable", "TandemGoodputLow", "TandemClockSkew"),
    *("TandemImagesDiffer", "TandemTwoTrainers", "TandemNotScraped"),
)

# Mistakes that change nothing, or nothing that any run could show.
_HARMLESS = {
    # Whether what was last heard is forgotten after a day or after ten.
    "TandemRunEndedWithoutFinalEval": ("with [10d]",),
    # Times are past ten seconds after 1970.
    "tandem:ckpt_age_seconds": (
        "> 0 and max b... with 10",
        "> 0) or time(... with 10",
        "> 0)... with 10",
    ),
    "tandem:eval_lag_seconds": (
        "> 0 and max b... with 10",
        "> 0)) or time... with 10",
        "> 0))... with 10",
    ),
    # Nothing, over a longer time.
    "tandem:goodput6h": ("[6h])))) / (su... with [60h]",),
}


def _name(rule):
    return rule.get("record") or rule["alert"]


def test_every_rule_is_made_wrong():
    assert set(_NAMES) == {_name(rule) for rule in (*run_rules(), *fleet_rules())}


def _relevant(made, all_rules):
    """Scenarios with something to say of the alerts that were made wrong."""
    touched = {re.sub(r"__\d+__$", "", rule["alert"]) for rule in made if "alert" in rule}
    for scenario in scenarios():
        if rules_of(scenario) is all_rules and (touched & set(scenario.expect)):
            yield scenario


def _tested(scenario: Scenario, names):
    test = as_promtool_test(scenario, names=names)
    if scenario.file == "healthy":
        every = [name for group in names.values() for name in group]
        test["promql_expr_test"] = [nothing_fires(scenario, alert=name) for name in every]
    return test


@pytest.mark.parametrize("name", _NAMES)
def test_every_mistake_in_a_rule_is_noticed(name, tmp_path):
    rules = fleet_rules() if name in map(_name, fleet_rules()) else run_rules()
    (rule,) = [rule for rule in rules if _name(rule) == name]
    found = list(mutants(rule))
    assert len(found) >= 3
    made = [
        wrong
        for number, mutant in enumerate(found)
        for wrong in derived(rules, mutant.rule, f"__{number}__")
    ]
    names: dict[str, list[str]] = {}
    for wrong in alerts(tuple(made)):
        names.setdefault(re.sub(r"__\d+__$", "", wrong["alert"]), []).append(wrong["alert"])
    recorded = [rule for rule in rules if "record" in rule]
    recorded += [other for rule in recorded for other in of_others(rule)]
    tests = [_tested(scenario, names) for scenario in _relevant(made, rules)]
    assert tests
    said = promtool_test(tmp_path, [*recorded, *made], tests)[1]
    noticed = {int(number) for number in re.findall(r"__(\d+)__", said)}
    harmless = _HARMLESS.get(name, ())
    if "record" in rule:
        # What others record too, alerts select from; test_alerts.py looks at selectors.
        harmless += ("left out everywhere",)
    missed = [
        mutant.mistake
        for number, mutant in enumerate(found)
        if number not in noticed and not any(words in mutant.mistake for words in harmless)
    ]
    assert not missed, f"{len(missed)} of {len(found)} mistakes in {name}:\n" + "\n".join(missed)
