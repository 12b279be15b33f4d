"""Each alert fires from its scenario on a real Prometheus, and is told by a real Alertmanager.

The scenarios of `alerts/` become the past of a Prometheus, up to the moment at which their alert
fires, and go on live from there; expressions are the charts' own. Only how long they have to hold
is cut short: that is promtool's matter (test_alerts.py), as it needs that long.
"""

import subprocess
import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest
import yaml

from tests.deploy.alerting import (
    Rule,
    Scenario,
    alerts,
    first_to_fire,
    fleet_rules,
    histories,
    run_rules,
    scenarios,
    seconds_of,
    value_at,
)
from tests.deploy.alerting_servers import Alertmanager, running_prometheus, running_servers
from tests.deploy.rendering import NAMESPACE, NEEDS_TOOLS, RELEASE, tool

pytestmark = [NEEDS_TOOLS, pytest.mark.slow]

_ALERTS = {rule["alert"]: rule for rule in (*alerts(run_rules()), *alerts(fleet_rules()))}
_RECORDINGS = [rule for rule in run_rules() if "record" in rule]
_SECONDS_TO_HOLD = "3s"


class Replay(NamedTuple):
    """A scenario in a namespace of its own.

    Attributes:
        namespace: which.
        scenario: the history.
        origin: when its first minute was, in seconds since 1970.
        rules: the alerts that are to look at it.
    """

    namespace: str
    scenario: Scenario
    origin: float
    rules: list[Rule]

    def own(self, text: str) -> str:
        """With this namespace instead of the scenarios' one."""
        return text.replace(f'namespace="{NAMESPACE}"', f'namespace="{self.namespace}"')

    def samples(self, when: float) -> Iterator[tuple[str, str]]:
        """Series and values at a time, as OpenMetrics writes them; those that are there."""
        minute = (when - self.origin) / 60
        for name, history in histories(self.scenario):
            value = value_at(history, minute)
            if value is None:
                continue
            if "_timestamp_seconds{" in name and value != 0:
                value += self.origin
            yield self.own(name).replace(", ", ","), f"{value:.15g}".replace("nan", "NaN")

    def group(self) -> Rule:
        """Its rules, evaluated each second."""
        rules = [
            {**rule, "expr": self.own(rule["expr"])} | ({"for": _SECONDS_TO_HOLD} if alert else {})
            for alert, some in ((False, _RECORDINGS), (True, self.rules))
            for rule in some
        ]
        return {"name": self.namespace, "interval": "1s", "rules": rules}


def _replays(now: float) -> list[Replay]:
    of_runs = alerts(run_rules())
    made = [
        Replay(f"n{alert.lower()}", scenario, now - seconds_of(when), [_ALERTS[alert]])
        for alert, (scenario, when) in first_to_fire().items()
    ]
    return made + [
        Replay(f"healthy{number}", each, now - 30 * each.minutes, of_runs)
        for number, each in enumerate(s for s in scenarios() if s.file == "healthy")
    ]


@pytest.fixture(scope="module")
def alertmanager(tmp_path_factory) -> Iterator[Alertmanager]:
    folder = tmp_path_factory.mktemp("alerts")
    now = time.time()
    replays = _replays(now)
    _load_past(folder, replays, now)

    def scraped() -> str:
        when = time.time()
        return "".join(f"{name} {value}\n" for r in replays for name, value in r.samples(when))

    with running_servers(folder, [r.group() for r in replays], scraped) as made:
        yield made


def _load_past(folder, replays: list[Replay], now: float) -> None:
    """One sample each minute, and what the recordings make of them."""
    lines = []
    for replay in replays:
        when = replay.origin
        while when < now:
            lines += [f"{name} {value} {when:.3f}\n" for name, value in replay.samples(when)]
            when += 60
    (folder / "past.txt").write_text("".join([*lines, "# EOF\n"]))
    _promtool(folder, "create-blocks-from", "openmetrics", "past.txt", "prometheus")
    recordings = [
        {"name": r.namespace, "rules": [{**x, "expr": r.own(x["expr"])} for x in _RECORDINGS]}
        for r in replays
    ]
    (folder / "recordings.yaml").write_text(yaml.safe_dump({"groups": recordings}))
    (folder / "prometheus.yaml").write_text("{}")
    start = min(r.origin for r in replays)
    with running_prometheus(folder) as url:
        _promtool(
            folder,
            *("create-blocks-from", "rules", f"--start={start:.0f}", f"--end={now:.0f}"),
            *(f"--url={url}", "--eval-interval=1m", "--output-dir=prometheus", "recordings.yaml"),
        )


def _promtool(folder, *arguments: str) -> None:
    done = subprocess.run(
        [tool("promtool"), "tsdb", *arguments], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("alert", sorted(_ALERTS))
def test_an_alert_fires_in_its_scenario(alert, alertmanager):
    namespace = f"n{alert.lower()}"

    def of_it(found):
        return [each for each in found if each["labels"]["namespace"] == namespace]

    alertmanager.await_alerts(of_it)
    assert alertmanager.has_told_of(alert, status="firing")
    (fired,) = of_it(alertmanager.alerts())
    scenario, _ = first_to_fire()[alert]
    more = scenario.expect[alert].get("labels", {})
    assert fired["labels"].items() >= {"alertname": alert, "run": RELEASE}.items()
    assert set(fired["labels"]) == {"alertname", "namespace", "run", "severity", *more}
    assert fired["annotations"]["runbook_url"].endswith(f"#{alert.lower()}")
    (receiver,) = fired["receivers"]
    assert receiver["name"] == {"page": "pages", "ticket": "tickets"}[fired["labels"]["severity"]]


def test_nothing_fires_of_runs_on_which_all_is_well(alertmanager):
    alertmanager.await_alerts(lambda found: len(found) >= len(_ALERTS))
    time.sleep(5)
    found = {each["labels"]["namespace"] for each in alertmanager.alerts()}
    assert not [name for name in found if name.startswith("healthy")]
