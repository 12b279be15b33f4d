"""The charts' alerts, on made-up histories (`alerts.yaml`), and the dashboard's queries."""

import functools
import json
import re
import subprocess

import pytest
import yaml
from prometheus_client import CollectorRegistry

from tandem.telemetry.metrics import EvaluatorMetrics, TrainerMetrics
from tests.deploy.rendering import (
    HERE,
    MONITORING,
    NEEDS_TOOLS,
    manifests,
    rendered,
    template,
    tool,
    trainer_job,
)

# Of kube-state-metrics and of Prometheus itself.
_METRICS_OF_OTHERS = {
    "kube_job_failed",
    "kube_pod_container_status_restarts_total",
    "kube_pod_status_unschedulable",
    "up",
}
_WORDS = {"and", "unless", "or", "by", "on", "sum", "max", "min", "count"}


@functools.cache
def _groups():
    flags = ("--set", "rules.prometheusRule.enabled=true")
    return [
        group
        for text in (rendered("operator"), template(MONITORING, *flags))
        for document in manifests(text)
        if document["kind"] == "PrometheusRule"
        for group in document["spec"]["groups"]
    ]


def _rules():
    return [rule for group in _groups() for rule in group["rules"]]


def _dashboard():
    return json.loads((MONITORING / "dashboards/tandem-run.json").read_text())


def _queries():
    return [t["expr"] for panel in _dashboard()["panels"] for t in panel.get("targets", [])]


def _metric_names():
    registry = CollectorRegistry()
    TrainerMetrics(registry)
    EvaluatorMetrics(registry)
    ends = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"]}
    return {
        family.name + end for family in registry.collect() for end in ends.get(family.type, [""])
    }


def _used(expression):
    """Metrics in an expression: its words without labels, ranges, groupings and functions."""
    bare = re.sub(
        r'"[^"]*"|\[[^\]]*\]|(by|on|without|ignoring) ?\([^)]*\)|\{[^}]*\}', "", expression
    )
    functions = set(re.findall(r"([a-z_:]+)\(", bare))
    return set(re.findall(r"[a-z_][a-z0-9_:]*", bare)) - functions - _WORDS


@NEEDS_TOOLS
def test_alerts_look_at_metrics_that_there_are():
    assert len(_rules()) >= 14
    for rule in _rules():
        assert _used(rule["expr"]) <= _metric_names() | _METRICS_OF_OTHERS, rule["expr"]


@NEEDS_TOOLS
def test_alerts_fire_when_they_should_and_only_then(tmp_path):
    scenarios = (HERE / "alerts.yaml").read_text()
    scenarios = scenarios.replace("JOB", trainer_job("operator")["metadata"]["name"])
    # promtool repeats numbers (0x9), but not these.
    scenarios = re.sub(r"NaNx(\d+)", lambda found: "NaN " * (int(found[1]) + 1), scenarios)
    tested = yaml.safe_load(scenarios)
    # What an alert says is for people, and reviewed with the golden renders.
    rules = [
        {**group, "rules": [{**rule, "annotations": {}} for rule in group["rules"]]}
        for group in _groups()
    ]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": rules}))
    (tmp_path / "test.yaml").write_text(scenarios)
    done = subprocess.run(
        [tool("promtool"), "test", "rules", "test.yaml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    fired = {
        expected["alertname"]
        for test in tested["tests"]
        for expected in test.get("alert_rule_test", [])
        if expected["exp_alerts"]
    }
    assert fired == {rule["alert"] for rule in _rules() if "alert" in rule}


@NEEDS_TOOLS
def test_every_alert_says_what_happened_and_what_to_do():
    for rule in _rules():
        if "alert" in rule:
            assert set(rule["annotations"]) == {"summary", "action"}
            assert rule["labels"]["severity"] in ("page", "ticket")


@NEEDS_TOOLS
def test_prometheus_understands_every_query_of_the_dashboard(tmp_path):
    recorded = [
        {"record": f"shown:{number}", "expr": query.replace("$__rate_interval", "5m")}
        for number, query in enumerate(_queries())
    ]
    groups = [{"name": "dashboard", "rules": recorded}]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": groups}))
    done = subprocess.run(
        [tool("promtool"), "check", "rules", tmp_path / "rules.yaml"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_dashboard_shows_metrics_that_there_are():
    assert len(_queries()) >= 15
    for query in _queries():
        assert _used(query) <= _metric_names(), query


def test_the_dashboards_panels_have_places_of_their_own():
    taken = {}
    for panel in _dashboard()["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert (x, y) not in taken, (panel["title"], taken[x, y])
                taken[x, y] = panel["title"]
    ids = [panel["id"] for panel in _dashboard()["panels"]]
    assert len(ids) == len(set(ids))


@NEEDS_TOOLS
@pytest.mark.parametrize("name", ["operator", "gmp"])
def test_both_kinds_of_rules_hold_the_same_alerts(name):
    kinds = {"operator": "PrometheusRule", "gmp": "Rules"}
    (made,) = [d for d in manifests(rendered(name)) if d["kind"] == kinds[name]]
    alerts = [rule["alert"] for rule in made["spec"]["groups"][0]["rules"]]
    assert alerts == [rule["alert"] for rule in _groups()[0]["rules"]]
