"""A real Prometheus on the node that scrapes the pods of a namespace.

Debian's is built without its discovery of Kubernetes' pods, so that a thread here tells it of them.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.deploy.rendering import tool
from tests.rig.cluster import Namespace
from tests.rig.ports import free_port


class Prometheus:
    """A running server's answers."""

    def __init__(self, url: str) -> None:
        self._url = url

    def query(self, expression: str) -> list[dict[str, Any]]:
        query = urllib.parse.urlencode({"query": expression})
        with urllib.request.urlopen(f"{self._url}/api/v1/query?{query}", timeout=10) as response:
            return json.load(response)["data"]["result"]

    def up(self) -> list[str]:
        """The components whose pods are scraped well."""
        return [sample["metric"]["component"] for sample in self.query("up == 1")]

    def latest(self, metric: str) -> float | None:
        """The highest value of the last half an hour."""
        found = self.query(f"max(max_over_time({metric}[30m]))")
        return float(found[0]["value"][1]) if found else None


@contextlib.contextmanager
def running_prometheus(namespace: Namespace, folder: Path) -> Iterator[Prometheus]:
    """Scrapes every second all pods of a namespace that have a port named `metrics`."""
    job = {
        "job_name": "pods",
        "file_sd_configs": [{"files": [str(folder / "pods.json")], "refresh_interval": "1s"}],
    }
    settings = {"global": {"scrape_interval": "1s"}, "scrape_configs": [job]}
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
    is_over = threading.Event()
    telling = threading.Thread(target=_tell_of_pods, args=(namespace, folder, is_over))
    telling.start()
    try:
        _wait_until_ready(f"http://{address}/-/ready", process)
        yield Prometheus(f"http://{address}")
    finally:
        is_over.set()
        telling.join()
        process.terminate()
        process.wait()


def _tell_of_pods(namespace: Namespace, folder: Path, is_over: threading.Event) -> None:
    while not is_over.wait(1.0):
        targets = [
            {
                "targets": [f"{pod['status']['podIP']}:{port['containerPort']}"],
                "labels": {"component": pod["metadata"]["labels"]["app.kubernetes.io/component"]},
            }
            for pod in namespace.get("pods")["items"]
            if pod["status"]["phase"] == "Running"
            for container in pod["spec"]["containers"]
            for port in container.get("ports", ())
            if port.get("name") == "metrics"
        ]
        (folder / "pods.new").write_text(json.dumps(targets))
        (folder / "pods.new").rename(folder / "pods.json")


def _wait_until_ready(url: str, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5):
            return
        time.sleep(0.1)
    raise RuntimeError(f"prometheus ended with {process.returncode}")
