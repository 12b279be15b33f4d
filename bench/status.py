"""How long `tandem status` takes, as a cold process each time.

Usage: .venv/bin/python -m bench.status [--rounds 11] [--runs 50]

- One run in a local folder: two attempts, eight checkpoints, two eval sets.
- Many runs in a namespace: as many suspended Jobs on a real API server, each with a run folder of
  its own; where no API server is to be had, it says so.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tandem.checkpoints.local import LocalStore
from tests.services.ctl.store.example_run import make_example_run

_ROOT = Path(__file__).resolve().parent.parent
_NAMESPACE = "bench-status"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--runs", type=int, default=50)
    options = parser.parse_args()
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"{os.cpu_count()} cores, load {load}\n")
    print("| look | target | median | range |\n|---|---:|---:|---:|")
    with tempfile.TemporaryDirectory(prefix="bench-status-") as folder:
        runs = [Path(folder) / f"run-{number:02d}" for number in range(options.runs)]
        for run in runs:
            make_example_run(LocalStore(run), Path(folder) / "scratch")
        _measure("a run in a local folder", 0.5, [str(runs[0])], rounds=options.rounds)
        problem = _make_jobs(runs)
        if problem:
            sys.exit(f"\n{options.runs} runs in a namespace: not measured, {problem}")
        try:
            what = f"{options.runs} runs in a namespace"
            _measure(what, 2.0, ["-n", _NAMESPACE], rounds=options.rounds)
        finally:
            _kubectl("delete", "namespace", _NAMESPACE, "--wait=false")


def _measure(what: str, target: float, arguments: Sequence[str], *, rounds: int) -> None:
    taken = []
    for _ in range(rounds + 1):
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "services.ctl", "status", *arguments, "--json"],
            cwd=_ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        taken.append(time.monotonic() - began)
        said = json.loads(done.stdout)
        runs = said.get("runs", [said])
        assert all(run["facts"]["access"] is None for run in runs), done.stdout
    taken = taken[1:]
    print(
        f"| {what} | {target:g} s | {statistics.median(taken):.2f} s | "
        f"{min(taken):.2f} to {max(taken):.2f} s |",
        flush=True,
    )


def _make_jobs(runs: Sequence[Path]) -> str | None:
    """Why that isn't possible, if it isn't."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAMESPACE}}
    jobs = [_job(run) for run in runs]
    items = {"apiVersion": "v1", "kind": "List", "items": [namespace, *jobs]}
    try:
        done = _kubectl("apply", "--filename=-", stdin=json.dumps(items))
    except FileNotFoundError:
        return "there is no kubectl"
    return done.stderr.strip().splitlines()[-1] if done.returncode else None


def _job(run: Path) -> dict[str, Any]:
    labels = {
        "app.kubernetes.io/name": "tandem",
        "app.kubernetes.io/instance": run.name,
        "app.kubernetes.io/component": "trainer",
    }
    container = {
        "name": "trainer",
        "image": "localhost/tandem:dev",
        "args": [f"--run={run}"],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": f"{run.name}-trainer", "namespace": _NAMESPACE, "labels": labels},
        "spec": {
            "suspend": True,
            "template": {
                "metadata": {"labels": labels},
                "spec": {"restartPolicy": "Never", "containers": [container]},
            },
        },
    }


def _kubectl(*arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["kubectl", *arguments], input=stdin, capture_output=True, text=True, check=False
    )


if __name__ == "__main__":
    main()
