"""A real Prometheus on loopback, asked as Grafana asks it."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests.deploy.rendering import tool
from tests.rig.ports import free_port

Labels = dict[str, str]


class Series(NamedTuple):
    """Points in time (seconds since 1970); an instant query gives one."""

    labels: Labels
    points: list[tuple[float, float]]

    @property
    def last(self) -> float:
        return self.points[-1][1]


class Prometheus:
    """A running server, and the file that tells it whom to scrape."""

    def __init__(self, url: str, targets: Path) -> None:
        self.url = url
        self._file = targets
        self._targets: dict[str, Labels] = {}

    def scrape(self, address: str, labels: Labels) -> None:
        """From now on, and again when others are added."""
        self._targets[address] = labels
        self._write()

    def forget(self, address: str) -> None:
        """As when a pod is gone."""
        del self._targets[address]
        self._write()

    def _write(self) -> None:
        found = [{"targets": [a], "labels": labels} for a, labels in self._targets.items()]
        new = self._file.with_suffix(".new")
        new.write_text(json.dumps(found))
        new.rename(self._file)

    def at(self, expression: str, when: float) -> list[Series]:
        """An instant query."""
        found = self._ask("query", {"query": expression, "time": when})
        return [Series(each["metric"], _points([each["value"]])) for each in found]

    def over(self, expression: str, start: float, end: float, step: float) -> list[Series]:
        """A range query."""
        asked = {"query": expression, "start": start, "end": end, "step": step}
        found = self._ask("query_range", asked)
        return [Series(each["metric"], _points(each["values"])) for each in found]

    def _ask(self, what: str, values: Mapping[str, Any]) -> list[dict[str, Any]]:
        body = urllib.parse.urlencode(values).encode()
        try:
            with urllib.request.urlopen(f"{self.url}/api/v1/{what}", body, timeout=30) as answer:
                return json.load(answer)["data"]["result"]
        except urllib.error.HTTPError as error:
            raise ValueError(f"{values['query']}: {error.read().decode()}") from error


def _points(values: list[tuple[float, str]]) -> list[tuple[float, float]]:
    return [(when, float(value)) for when, value in values]


@contextlib.contextmanager
def running_prometheus(folder: Path, *, interval_seconds: int) -> Iterator[Prometheus]:
    """Starts one that scrapes whatever it is told of so often."""
    targets = folder / "targets.json"
    job = {
        "job_name": "pods",
        "file_sd_configs": [{"files": [str(targets)], "refresh_interval": "1s"}],
    }
    settings = {
        "global": {"scrape_interval": f"{interval_seconds}s"},
        "scrape_configs": [job],
    }
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(settings))
    address = f"127.0.0.1:{free_port()}"
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            [
                tool("prometheus"),
                f"--config.file={folder / 'prometheus.yaml'}",
                f"--storage.tsdb.path={folder / 'prometheus'}",
                f"--web.listen-address={address}",
            ],
            stdout=log,
            stderr=log,
        )
    try:
        _wait_until_ready(f"http://{address}/-/ready", process)
        yield Prometheus(f"http://{address}", targets)
    finally:
        process.terminate()
        process.wait()


def _wait_until_ready(url: str, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5):
            return
        time.sleep(0.1)
    raise RuntimeError(f"prometheus ended with {process.returncode}")
