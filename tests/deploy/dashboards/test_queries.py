"""Every expression: Prometheus understands it, and its metrics exist."""

import re
import subprocess

import pytest
import yaml

from tandem.telemetry import catalogue
from tests.deploy.dashboards.reading import ANYTHING, NAMES, board, filled, panels, queries
from tests.deploy.rendering import NEEDS_TOOLS, tool

_OF_KUBERNETES = {
    "container_cpu_usage_seconds_total",
    "container_memory_working_set_bytes",
    "kube_pod_container_resource_limits",
    "kube_pod_container_status_last_terminated_reason",
    "kube_pod_container_status_restarts_total",
    "kube_pod_container_status_waiting_reason",
    "kube_pod_status_phase",
    "kube_pod_status_unschedulable",
}
_OF_PROMETHEUS = {"ALERTS"}


def _selected(expression):
    """The metrics in an expression: names before a brace."""
    return set(re.findall(r"([A-Za-z_:][A-Za-z0-9_:]*)\{", expression))


def _exported():
    ends = {"gauge": [""], "counter": [""], "histogram": ["_bucket", "_sum", "_count"]}
    return {metric.name + end for metric in catalogue.ALL for end in ends[metric.kind]}


@NEEDS_TOOLS
@pytest.mark.parametrize("name", NAMES)
def test_prometheus_understands_every_expression(name, tmp_path):
    rules = [
        {"record": f"shown:{number}", "expr": filled(expression, ANYTHING)}
        for number, expression in enumerate(queries(board(name)))
    ]
    assert not [rule for rule in rules if "$" in rule["expr"]]
    groups = {"groups": [{"name": "dashboard", "rules": rules}]}
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(groups))
    done = subprocess.run(
        [tool("promtool"), "check", "rules", "rules.yaml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_every_metric_exists(name):
    made = board(name)
    for row, panel in panels(made):
        known = _exported() | (_OF_KUBERNETES if row["collapsed"] else set())
        for target in panel["targets"]:
            found = _selected(target["expr"])
            assert found, target["expr"]
            assert found <= known, (panel["title"], found - known)
    for annotation in made["annotations"]["list"]:
        assert _selected(annotation["expr"]) <= _exported() | _OF_PROMETHEUS


def test_no_panel_asks_for_all_runs_by_mistake():
    for _, panel in panels(board("tandem-run")):
        for target in panel["targets"]:
            for selection in re.findall(r"\{([^}]*)\}", target["expr"]):
                assert selection.startswith('namespace="$namespace", '), target["expr"]
