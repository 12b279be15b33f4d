"""Made-up histories of runs, and what promtool finds that the charts' rules make of them.

A scenario of `alerts/*.yaml` has histories and expectations:

    series:
      'tandem_train_step{TRAINER}': '0: 0+10, 20: 200, 90: gone'
    expect:
      TandemTrainStalled: {quiet: 35m, fires: 36m}

A history says what holds from a minute on: a number, a number that grows each minute, `now` (the
time; `now-3600`, too), `nan`, or `gone`. TRAINER, EVALUATOR and CLUSTER stand for the labels of the
trainer's, the evaluator's and the cluster's metrics; JOB for the trainer Job's name. Every history
of the run is also another run's, and another namespace's, of which no alert may speak.
"""

from __future__ import annotations

import functools
import math
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests.deploy.rendering import (
    HERE,
    MONITORING,
    NAMESPACE,
    RELEASE,
    manifests,
    rendered,
    template,
    tool,
    trainer_job,
)

Rule = dict[str, Any]

_OTHER_RUN = (f'run="{RELEASE}"', 'run="other"')
_PART = re.compile(r"(?P<start>now|-?[\d.]+)(?P<growth>[+-][\d.]+)?")


class Scenario(NamedTuple):
    """One made-up history; `file` is the stem of where it stands."""

    file: str
    name: str
    minutes: int
    series: dict[str, str]
    expect: dict[str, Any]


@functools.cache
def scenarios() -> tuple[Scenario, ...]:
    """All that there are."""
    return tuple(
        Scenario(path.stem, made["name"], made["minutes"], made["series"], made["expect"])
        for path in sorted((HERE / "alerts").glob("*.yaml"))
        for made in yaml.safe_load(path.read_text())
    )


@functools.cache
def run_rules() -> tuple[Rule, ...]:
    """Rules of one run's release."""
    return tuple(_rules(rendered("operator")))


@functools.cache
def fleet_rules() -> tuple[Rule, ...]:
    """Rules of the chart that is installed once."""
    return tuple(_rules(template(MONITORING, "--set", "rules.prometheusRule.enabled=true")))


def _rules(text: str) -> Iterator[Rule]:
    for document in manifests(text):
        if document["kind"] == "PrometheusRule":
            for group in document["spec"]["groups"]:
                yield from group["rules"]


def alerts(rules: tuple[Rule, ...]) -> list[Rule]:
    """Those that are alerts."""
    return [rule for rule in rules if "alert" in rule]


def rules_of(scenario: Scenario) -> tuple[Rule, ...]:
    """The rules that a scenario is about."""
    return fleet_rules() if scenario.file == "fleet" else run_rules()


def unexplained(rules: list[Rule]) -> list[Rule]:
    """Rules without annotations, which promtool would compare, and which are for people."""
    return [{name: part for name, part in r.items() if name != "annotations"} for r in rules]


@functools.cache
def _parts(history: str) -> list[tuple[int, str]]:
    """What holds from which minute on."""
    parts = [part.split(":") for part in history.split(",")]
    starts = [(int(minute), text.strip()) for minute, text in parts]
    assert starts == sorted(starts), history
    return starts


def value_at(history: str, minute: float) -> float | None:
    """What holds then, as seconds since the first minute where it is a time; None if nothing."""
    found = None
    for start, text in _parts(history):
        if start <= minute:
            found = _value(text, minute, start)
    return found


def samples(history: str, minutes: int) -> str:
    """A history in promtool's words: one value each minute."""
    leaves = {start for start, text in _parts(history) if text == "gone"}
    values = []
    for minute in range(minutes + 1):
        value = value_at(history, minute)
        absent = "stale" if minute in leaves else "_"
        values.append(absent if value is None else f"{value:.10g}".replace("nan", "NaN"))
    return " ".join(values)


def _value(text: str, minute: float, start: int) -> float | None:
    if text == "gone":
        return None
    if text == "nan":
        return math.nan
    found = _PART.fullmatch(text)
    assert found, f"{text!r} is no part of a history"
    growth = float(found["growth"] or 0)
    if found["start"] == "now":
        return 60 * minute + growth
    return float(found["start"]) + growth * (minute - start)


def as_promtool_test(scenario: Scenario, *, names: dict[str, list[str]]) -> Rule:
    """A scenario as promtool's test; `names`: rules that an alert's expectations hold for."""
    severity = {rule["alert"]: rule["labels"]["severity"] for rule in alerts(rules_of(scenario))}
    series = [
        {"series": name, "values": samples(history, scenario.minutes)}
        for name, history in _with_others(scenario)
    ]
    checks = []
    for alert, wanted in scenario.expect.items():
        extra = {key: _named(value) for key, value in wanted.get("labels", {}).items()}
        labels = {"namespace": NAMESPACE, "run": RELEASE, "severity": severity[alert]} | extra
        for name in names.get(alert, []):
            for when, firing in _moments(wanted):
                expected = [{"exp_labels": labels}] if firing else []
                checks.append({"eval_time": when, "alertname": name, "exp_alerts": expected})
    return {
        "name": scenario.name,
        "interval": "1m",
        "input_series": series,
        "alert_rule_test": checks,
    }


def _moments(wanted: dict[str, Any]) -> Iterator[tuple[str, bool]]:
    for kind in ("quiet", "fires"):
        given = wanted.get(kind, [])
        for when in given if isinstance(given, list) else [given]:
            yield when, kind == "fires"


@functools.cache
def first_to_fire() -> dict[str, tuple[Scenario, str]]:
    """By alert: the first scenario that it fires in, and when it does so for the first time."""
    found: dict[str, tuple[Scenario, str]] = {}
    for scenario in scenarios():
        for alert, wanted in scenario.expect.items():
            when = [when for when, fires in _moments(wanted) if fires]
            if when:
                found.setdefault(alert, (scenario, when[0]))
    return found


def seconds_of(text: str) -> int:
    """Of a moment or a length like `1h20m30s`."""
    units = {"s": 1, "m": 60, "h": 3600}
    return sum(int(number) * units[unit] for number, unit in re.findall(r"(\d+)([smh])", text))


def histories(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """Series, as they are named, and their histories."""
    for name, history in scenario.series.items():
        yield _named(name), history


def _with_others(scenario: Scenario) -> Iterator[tuple[str, str]]:
    for own, history in histories(scenario):
        yield own, history
        if scenario.file != "fleet":
            yield own.replace(f'namespace="{NAMESPACE}"', 'namespace="elsewhere"'), history
            if _OTHER_RUN[0] in own:
                yield own.replace(*_OTHER_RUN), history


def of_others(rule: Rule) -> Iterator[Rule]:
    """A rule as the other run, and the other namespace, have it."""
    for own, other in ((f'namespace="{NAMESPACE}"', 'namespace="elsewhere"'), _OTHER_RUN):
        yield {**rule, "expr": rule["expr"].replace(own, other)}


@functools.cache
def _named(text: str) -> str:
    job = trainer_job("operator")["metadata"]["name"]
    cluster = f'namespace="{NAMESPACE}"'
    run = f'{cluster}, run="{RELEASE}"'
    return (
        text.replace("{TRAINER", f'{{{run}, container="trainer"')
        .replace("{EVALUATOR", f'{{{run}, container="evaluator"')
        .replace("{CLUSTER", f"{{{cluster}")
        .replace("JOB", job)
    )


def promtool_test(folder: Path, rules: list[Rule], tests: list[Rule]) -> tuple[int, str]:
    """What `promtool test rules` says: exit code and words."""
    group = {"name": "tested", "interval": "30s", "rules": unexplained(rules)}
    (folder / "rules.yaml").write_text(yaml.safe_dump({"groups": [group]}))
    tested = {"evaluation_interval": "30s", "rule_files": ["rules.yaml"], "tests": tests}
    (folder / "test.yaml").write_text(yaml.safe_dump(tested))
    done = subprocess.run(
        [tool("promtool"), "test", "rules", "test.yaml"], cwd=folder, capture_output=True, text=True
    )
    return done.returncode, done.stdout + done.stderr


def nothing_fires(scenario: Scenario, *, alert: str = "") -> Rule:
    """Promtool's check that nothing, or one alert not, has fired at any time of a scenario."""
    which = f', alertname="{alert}"' if alert else ""
    span = f"{scenario.minutes}m"
    fired = f'count_over_time(ALERTS{{alertstate="firing"{which}}}[{span}])'
    return {
        "expr": f"count({fired}) or vector(0)",
        "eval_time": span,
        "exp_samples": [{"labels": "{}", "value": 0}],
    }
