"""A real Prometheus and a real Alertmanager on loopback, what they scrape, and what people hear."""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

from tests.deploy.alerting import Rule
from tests.deploy.rendering import MONITORING, tool
from tests.rig.ports import free_port

_PATIENCE_SECONDS = 90.0

Alert = dict[str, Any]


class Alertmanager:
    """What fires, and what was told to the receivers of pages and of tickets."""

    def __init__(self, url: str) -> None:
        self.messages: list[dict[str, Any]] = []
        self._url = url

    def alerts(self) -> list[Alert]:
        """All that fire now, also those that others keep quiet."""
        with urllib.request.urlopen(f"{self._url}/api/v2/alerts", timeout=5) as answer:
            return json.load(answer)

    def await_alerts(self, wanted: Callable[[list[Alert]], bool]) -> list[Alert]:
        """Waits for them to be as wanted."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not wanted(found := self.alerts()):
            assert time.monotonic() < deadline, [(a["labels"], a["status"]) for a in found]
            time.sleep(0.5)
        return found

    def told(self) -> list[Alert]:
        """What receivers have been told so far."""
        return [told for message in list(self.messages) for told in message["alerts"]]

    def has_told_of(self, alert: str, *, status: str) -> bool:
        """Whether receivers are told that an alert is `firing` or `resolved`, be it in a while."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < deadline:
            if (alert, status) in {(a["labels"]["alertname"], a["status"]) for a in self.told()}:
                return True
            time.sleep(0.5)
        return False


@contextlib.contextmanager
def running_servers(
    folder: Path, groups: list[Rule], metrics: Callable[[], str]
) -> Iterator[Alertmanager]:
    """Scrapes and evaluates every second; `folder/prometheus` may hold a past already.

    Args:
        folder: for settings, data and the log.
        groups: of rules.
        metrics: what a scrape answers; its labels are all that a series has.
    """
    address = f"127.0.0.1:{free_port()}"
    made = Alertmanager(f"http://{address}")
    with _serving(metrics, made.messages.append) as exporter:
        (folder / "rules.yaml").write_text(yaml.safe_dump({"groups": groups}))
        _write(folder / "prometheus.yaml", _scraping(exporter, alertmanager=address))
        _write(folder / "alertmanager.yaml", _routing(exporter))
        with (
            running_prometheus(folder, "--rules.alert.resend-delay=1s"),
            _running(
                folder,
                *(tool("alertmanager"), f"--config.file={folder}/alertmanager.yaml"),
                *(f"--web.listen-address={address}", f"--storage.path={folder}/alertmanager"),
                "--cluster.listen-address=",
            ),
        ):
            _await_up(f"http://{address}/-/ready", folder)
            yield made


@contextlib.contextmanager
def running_prometheus(folder: Path, *flags: str) -> Iterator[str]:
    """With the settings and the data of a folder; gives its URL."""
    address = f"127.0.0.1:{free_port()}"
    with _running(
        folder,
        *(tool("prometheus"), f"--config.file={folder}/prometheus.yaml"),
        *(f"--web.listen-address={address}", f"--storage.tsdb.path={folder}/prometheus"),
        *flags,
    ):
        _await_up(f"http://{address}/-/ready", folder)
        yield f"http://{address}"


def _scraping(exporter: str, *, alertmanager: str) -> Rule:
    # A past that is loaded has no target: what is scraped is to continue it.
    forgotten = {"regex": "job|instance", "action": "labeldrop"}
    job = {
        "job_name": "runs",
        "honor_labels": True,
        "static_configs": [{"targets": [exporter]}],
        "metric_relabel_configs": [forgotten],
    }
    return {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": ["rules.yaml"],
        "scrape_configs": [job],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": [alertmanager]}]}]},
    }


def _routing(receiver: str) -> Rule:
    """As shipped, but at once, and with an address for the receivers."""
    shipped = yaml.safe_load((MONITORING / "files/alertmanager.yaml").read_text())
    shipped["route"] |= {"group_wait": "1s", "group_interval": "1s"}
    for each in shipped["receivers"]:
        url = f"http://{receiver}/{each['name']}"
        each["webhook_configs"] = [{"url": url, "send_resolved": True}]
    return shipped


def _write(path: Path, settings: Rule) -> None:
    path.write_text(yaml.safe_dump(settings))


@contextlib.contextmanager
def _running(folder: Path, *program: str) -> Iterator[None]:
    with (folder / "log").open("a") as log:
        process = subprocess.Popen(program, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def _await_up(url: str, folder: Path) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5):
            return
        assert time.monotonic() < deadline, (folder / "log").read_text()
        time.sleep(0.2)


@contextlib.contextmanager
def _serving(get: Callable[[], str], post: Callable[[dict[str, Any]], None]) -> Iterator[str]:
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
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
