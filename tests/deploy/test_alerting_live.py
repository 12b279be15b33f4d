"""A real Prometheus and a real Alertmanager: alerts fire, keep others quiet, are heard, and end.

The run is made up, and its time is sixty times as fast: minutes of the rules are seconds here.
"""

import json
import re
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import yaml

from tests.deploy.alerting import Rule
from tests.deploy.rendering import (
    CHART,
    MONITORING,
    NAMESPACE,
    NEEDS_TOOLS,
    RELEASE,
    SETS,
    flags_of,
    manifests,
    template,
    tool,
)

pytestmark = [NEEDS_TOOLS, pytest.mark.slow]

_PATIENCE_SECONDS = 90.0
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


class Stack:
    """The programs, and what people heard."""

    def __init__(self, run: Run, alertmanager: str) -> None:
        self.run = run
        self.heard: list[dict] = []
        self._alertmanager = alertmanager

    def alerts(self) -> dict[str, dict]:
        """What is firing, by name, as Alertmanager sees it."""
        with urllib.request.urlopen(f"{self._alertmanager}/api/v2/alerts", timeout=5) as answer:
            return {made["labels"]["alertname"]: made for made in json.load(answer)}

    def await_alerts(self, wanted: Callable[[dict[str, dict]], bool]) -> dict[str, dict]:
        """Waits for them to be as wanted."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not wanted(found := self.alerts()):
            assert time.monotonic() < deadline, {n: a["status"] for n, a in found.items()}
            time.sleep(0.5)
        return found

    def heard_of(self, alert: str, *, status: str) -> bool:
        """Whether a page was sent of it."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < deadline:
            for message in list(self.heard):
                for told in message["alerts"]:
                    if (told["labels"]["alertname"], told["status"]) == (alert, status):
                        return True
            time.sleep(0.5)
        return False


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


def _serve(get: Callable[[], str], post: Callable[[dict], None]) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            body = get().encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self):
            post(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.fixture
def stack(tmp_path) -> Iterator[Stack]:
    run = Run()
    ports = [_free_port(), _free_port()]
    made = Stack(run, f"http://127.0.0.1:{ports[1]}")
    server = _serve(run.text, made.heard.append)
    _write_settings(tmp_path, exporter=server.server_port, alertmanager=ports[1])
    common = ["--web.listen-address=127.0.0.1:{}", f"--storage.{{}}={tmp_path}/{{}}"]
    programs = [
        [
            *(tool("prometheus"), f"--config.file={tmp_path}/prometheus.yaml"),
            common[0].format(ports[0]),
            common[1].format("tsdb.path", "prometheus"),
            "--rules.alert.resend-delay=1s",
        ],
        [
            *(tool("alertmanager"), f"--config.file={tmp_path}/alertmanager.yaml"),
            common[0].format(ports[1]),
            common[1].format("path", "alertmanager"),
            "--cluster.listen-address=",
        ],
    ]
    running = []
    try:
        for program in programs:
            with (tmp_path / "log").open("a") as log:
                running.append(subprocess.Popen(program, stdout=log, stderr=log))
        _await_up(made, tmp_path)
        yield made
    finally:
        for process in running:
            process.terminate()
            process.wait()
        server.shutdown()
        server.server_close()


def _await_up(stack: Stack, folder) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            stack.alerts()
        except OSError:
            assert time.monotonic() < deadline, (folder / "log").read_text()
            time.sleep(0.2)
        else:
            return


def _write_settings(folder, *, exporter: int, alertmanager: int) -> None:
    flags = ("--set", "monitoring.alerts.evaluatorSilentSeconds=2")
    text = template(CHART, *flags_of(SETS["operator"]), *flags)
    rules = next(d for d in manifests(text) if d["kind"] == "PrometheusRule")
    quick = [_quickened(rule) for rule in rules["spec"]["groups"][0]["rules"]]
    # Two seconds of silence are not quickened, as they are the run's own.
    quick = [{**r, "expr": r["expr"].replace("[51ms]", "[3s]")} for r in quick]
    groups = [{"name": "quick", "interval": "1s", "rules": quick}]
    (folder / "rules.yaml").write_text(yaml.safe_dump({"groups": groups}))
    scraped = {"targets": [f"127.0.0.1:{exporter}"]}
    settings = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": ["rules.yaml"],
        "scrape_configs": [
            {"job_name": "run", "honor_labels": True, "static_configs": [scraped]},
        ],
        "alerting": {
            "alertmanagers": [{"static_configs": [{"targets": [f"127.0.0.1:{alertmanager}"]}]}]
        },
    }
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(settings))
    shipped = yaml.safe_load((MONITORING / "files/alertmanager.yaml").read_text())
    shipped["route"] |= {"group_wait": "1s", "group_interval": "1s"}
    hook = {"url": f"http://127.0.0.1:{exporter}/", "send_resolved": True}
    next(r for r in shipped["receivers"] if r["name"] == "pages")["webhook_configs"] = [hook]
    (folder / "alertmanager.yaml").write_text(yaml.safe_dump(shipped))


def _kept_quiet(found: dict[str, dict], alert: str, *, by: str) -> bool:
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
def test_an_alert_fires_keeps_what_follows_quiet_and_ends(goes_wrong, mended, alert, quiet, stack):
    time.sleep(5)  # some of the healthy past that the rules look back on
    assert stack.alerts() == {}
    run = stack.run
    if alert == "TandemGcsErrorFastBurn":
        run.requests(failing=0.2)
        stack.await_alerts(lambda found: alert in found)
        run.set("tandem_ckpt_last_commit_timestamp_seconds", time.time() - 9000, pod="a")
        for count in (0, 1):
            run.set("tandem_ckpt_saves_total", count, pod="a", outcome="error")
            time.sleep(3)
    else:
        getattr(run, goes_wrong)()
        if alert == "TandemTrainStalled":
            pending = "tandem_ckpt_oldest_pending_timestamp_seconds"
            run.set(pending, time.time(), pod="e")
    found = stack.await_alerts(lambda found: _kept_quiet(found, quiet, by=alert))
    assert found[alert]["annotations"]["runbook_url"].endswith(f"#{alert.lower()}")
    assert stack.heard_of(alert, status="firing")
    told = {told["labels"]["alertname"] for message in stack.heard for told in message["alerts"]}
    assert quiet not in told

    if mended == "requests":
        run.requests(failing=0.0)
        run.set("tandem_ckpt_last_commit_timestamp_seconds", time.time, pod="a")
    else:
        getattr(run, mended)()
        run.set("tandem_ckpt_oldest_pending_timestamp_seconds", 0, pod="e")
    stack.await_alerts(lambda found: not {alert, quiet} & set(found))
    assert stack.heard_of(alert, status="resolved")
