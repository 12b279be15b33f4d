"""A real Prometheus and a real Alertmanager: alerts fire, keep others quiet, are heard, and end.

The run is made up, and its time is sixty times as fast: minutes of the rules are seconds here.
"""

import re
import time
from collections.abc import Callable, Iterator

import pytest

from tests.deploy.alerting import Rule
from tests.deploy.alerting_servers import Alert, Alertmanager, running_servers
from tests.deploy.rendering import (
    CHART,
    NAMESPACE,
    NEEDS_TOOLS,
    RELEASE,
    SETS,
    flags_of,
    manifests,
    template,
)

pytestmark = [NEEDS_TOOLS, pytest.mark.slow]

_LABELS = f'namespace="{NAMESPACE}", run="{RELEASE}", pod="{{pod}}"'


class Run:
    """Metrics of a run, as trainer, evaluator and cluster export them; by name and labels."""

    def __init__(self) -> None:
        self.values: dict[str, float | Callable[[], float]] = {}
        self.set("tandem_run_state", 1, pod="a", state="running")
        self.set("tandem_ckpt_interval_target_seconds", 600, pod="a")
        self.set("tandem_train_stall_budget_seconds", 3, pod="a")
        self.set("tandem_eval_lag_budget_seconds", 12, pod="e")
        self.set("tandem_eval_phase", 1, pod="e", phase="running")
        self.set("tandem_ckpt_oldest_pending_timestamp_seconds", 0, pod="e")
        self.set("tandem_ckpt_last_commit_timestamp_seconds", time.time, pod="a")
        self.trains()
        self.evaluates()
        self.requests(failing=0.0)

    def set(self, name: str, value: float | Callable[[], float], *, pod: str, **labels: str):
        """Sets one series."""
        more = "".join(f', {key}="{text}"' for key, text in labels.items())
        self.values[f"{name}{{{_LABELS.format(pod=pod)}{more}}}"] = value

    def trains(self) -> None:
        """Has the trainer take steps."""
        self.set("tandem_train_step", time.time, pod="a")
        self.set("tandem_train_last_step_timestamp_seconds", time.time, pod="a")

    def hangs(self) -> None:
        """Has it take no more."""
        self.set("tandem_train_step", 1000, pod="a")
        self.set("tandem_train_last_step_timestamp_seconds", time.time(), pod="a")

    def evaluates(self) -> None:
        """Has the evaluator beat and score."""
        self.set("tandem_eval_heartbeat_timestamp_seconds", time.time, pod="e")
        self.set("tandem_eval_images_done", time.time, pod="e")

    def falls_silent(self) -> None:
        """Has it do neither."""
        self.set("tandem_eval_heartbeat_timestamp_seconds", time.time(), pod="e")
        self.set("tandem_eval_images_done", 40, pod="e")

    def requests(self, *, failing: float) -> None:
        """Makes a hundred requests a second, of which a share fails from now on."""
        start = time.time()
        for outcome, share in (("ok", 1 - failing), ("error", failing)):
            rate = 100 * share
            self.set(
                "tandem_gcs_requests_total",
                lambda rate=rate: rate * (time.time() - start),
                pod="a",
                outcome=outcome,
            )

    def text(self) -> str:
        """As scraped."""
        lines = [f"{k} {v() if callable(v) else v}\n" for k, v in list(self.values.items())]
        return "".join(lines)


def _quickened(rule: Rule) -> Rule:
    """A rule whose minutes are seconds."""
    expression = re.sub(
        r"(?<=[\[: ])(\d+)(s|m|h|d)(?=[\]: ])",
        lambda found: f"{int(found[1]) * _MILLISECONDS[found[2]]}ms",
        rule["expr"],
    )
    quick = {**rule, "expr": expression}
    if "for" in rule:
        number, unit = re.fullmatch(r"(\d+)([smh])", rule["for"]).groups()
        quick["for"] = f"{int(number) * _MILLISECONDS[unit]}ms"
    return quick


_MILLISECONDS = {"s": 17, "m": 1000, "h": 60_000, "d": 1_440_000}


@pytest.fixture
def run() -> Run:
    return Run()


@pytest.fixture
def alertmanager(run, tmp_path) -> Iterator[Alertmanager]:
    flags = ("--set", "monitoring.alerts.evaluatorSilentSeconds=2")
    text = template(CHART, *flags_of(SETS["operator"]), *flags)
    rules = next(d for d in manifests(text) if d["kind"] == "PrometheusRule")
    quick = [_quickened(rule) for rule in rules["spec"]["groups"][0]["rules"]]
    # Two seconds of silence are not quickened, as they are the run's own.
    quick = [{**r, "expr": r["expr"].replace("[51ms]", "[3s]")} for r in quick]
    groups = [{"name": "quick", "interval": "1s", "rules": quick}]
    with running_servers(tmp_path, groups, run.text) as made:
        yield made


def _by_name(found: list[Alert]) -> dict[str, Alert]:
    return {made["labels"]["alertname"]: made for made in found}


def _kept_quiet(found: dict[str, Alert], alert: str, *, by: str) -> bool:
    if alert not in found or by not in found:
        return False
    return found[by]["fingerprint"] in found[alert]["status"]["inhibitedBy"]


@pytest.mark.parametrize(
    ("goes_wrong", "mended", "alert", "quiet"),
    [
        ("hangs", "trains", "TandemTrainStalled", "TandemEvalLagHigh"),
        ("falls_silent", "evaluates", "TandemEvaluatorSilent", "TandemEvalStuck"),
        ("requests", "requests", "TandemGcsErrorFastBurn", "TandemSaveFailed"),
    ],
)
def test_an_alert_fires_keeps_what_follows_quiet_and_ends(
    goes_wrong, mended, alert, quiet, run, alertmanager
):
    time.sleep(5)  # some of the healthy past that the rules look back on
    assert alertmanager.alerts() == []
    if alert == "TandemGcsErrorFastBurn":
        run.requests(failing=0.2)
        alertmanager.await_alerts(lambda found: alert in _by_name(found))
        run.set("tandem_ckpt_last_commit_timestamp_seconds", time.time() - 9000, pod="a")
        for count in (0, 1):
            run.set("tandem_ckpt_saves_total", count, pod="a", outcome="error")
            time.sleep(3)
    else:
        getattr(run, goes_wrong)()
        if alert == "TandemTrainStalled":
            pending = "tandem_ckpt_oldest_pending_timestamp_seconds"
            run.set(pending, time.time(), pod="e")
    found = alertmanager.await_alerts(lambda found: _kept_quiet(_by_name(found), quiet, by=alert))
    assert _by_name(found)[alert]["annotations"]["runbook_url"].endswith(f"#{alert.lower()}")
    assert alertmanager.has_told_of(alert, status="firing")
    assert quiet not in _by_name(alertmanager.told())

    if mended == "requests":
        run.requests(failing=0.0)
        run.set("tandem_ckpt_last_commit_timestamp_seconds", time.time, pod="a")
    else:
        getattr(run, mended)()
        run.set("tandem_ckpt_oldest_pending_timestamp_seconds", 0, pod="e")
    alertmanager.await_alerts(lambda found: not {alert, quiet} & set(_by_name(found)))
    assert alertmanager.has_told_of(alert, status="resolved")
