"""Alertmanager's file in the monitoring chart: which alerts keep which others quiet."""

import re
import subprocess

import pytest
import yaml

from tests.deploy.alerting import alerts, fleet_rules, run_rules
from tests.deploy.rendering import MONITORING, NEEDS_TOOLS, tool

pytestmark = NEEDS_TOOLS

_FILE = MONITORING / "files/alertmanager.yaml"
_RULES = yaml.safe_load(_FILE.read_text())["inhibit_rules"]


def _alertnames(matchers):
    (matcher,) = matchers
    return re.fullmatch(r'alertname=~?"([\w|]+)"', matcher)[1].split("|")


def _pairs():
    return {
        (source, target)
        for rule in _RULES
        for source in _alertnames(rule["source_matchers"])
        for target in _alertnames(rule["target_matchers"])
    }


def _severities():
    return {r["alert"]: r["labels"]["severity"] for r in alerts((*run_rules(), *fleet_rules()))}


def test_alertmanager_accepts_it():
    done = subprocess.run(
        [tool("amtool"), "check-config", str(_FILE)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(_RULES)} inhibit rules" in done.stdout


def test_only_alerts_of_the_same_run_keep_one_quiet():
    assert {tuple(rule["equal"]) for rule in _RULES} == {("namespace", "run")}


def test_it_names_alerts_that_there_are():
    assert {name for pair in _pairs() for name in pair} <= set(_severities())


def test_every_page_keeps_others_quiet_or_is_kept_quiet():
    pages = {name for name, severity in _severities().items() if severity == "page"}
    assert pages <= {name for pair in _pairs() for name in pair}


def test_no_two_alerts_keep_each_other_quiet():
    reached = _pairs()
    for _ in _severities():
        reached |= {(a, d) for a, b in reached for c, d in _pairs() if b == c}
    assert not {(a, b) for a, b in reached if a == b}


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("TandemTrainStalled", "TandemEvalLagHigh"),
        ("TandemPodUnschedulable", "TandemEvaluatorSilent"),
        ("TandemPodUnschedulable", "TandemTrainStalled"),
        ("TandemTrainerFailed", "TandemCheckpointStale"),
        ("TandemGcsErrorFastBurn", "TandemSaveFailed"),
        ("TandemGcsErrorFastBurn", "TandemGcsErrorSlowBurn"),
    ],
)
def test_a_cause_keeps_what_follows_from_it_quiet(source, target):
    assert (source, target) in _pairs()


def test_what_a_run_still_owes_is_kept_quiet_by_alerts_on_the_evaluator_alone():
    quieting = {a for a, b in _pairs() if b == "TandemRunEndedWithoutFinalEval"}
    assert quieting
    assert all(name.startswith("TandemEval") for name in quieting)
