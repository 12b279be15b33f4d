"""Charts rendered by the pinned Helm, once for each value set in a session."""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

CHECKOUT = Path(__file__).resolve().parent.parent.parent
CHART = CHECKOUT / "deploy/helm/tandem"
MONITORING = CHECKOUT / "deploy/helm/tandem-monitoring"
HERE = Path(__file__).resolve().parent
GOLDEN = HERE / "golden"

NEEDS_TOOLS = pytest.mark.cluster
"""Of tests that need programs which `scripts/tools` fetches."""

HELMS = ("helm", "helm3")
RELEASE, NAMESPACE = "raccoon", "research"

_EXPERIMENT = HERE / "experiment"
_KIND = CHART / "examples/kind.yaml"
_DEMO_CONFIG = CHECKOUT / "services/ctl/demo/pipeline.config"

SETS: Mapping[str, Path] = {
    path.stem: path for path in sorted((HERE / "values").glob("*.yaml"))
} | {"kind": _KIND}

Manifest = dict[str, Any]


@functools.cache
def tool(name: str) -> str:
    """Path of a pinned program, fetched when it isn't there."""
    found = subprocess.run(
        [CHECKOUT / "scripts/tools", name], stdout=subprocess.PIPE, text=True, check=True
    )
    return found.stdout.strip()


def flags_of(values: Path) -> list[str]:
    """Helm's flags for a value set: its file and the experiment that goes with it."""
    if values == _KIND:
        return ["--values", str(values), "--set-file", f"experiment.pipelineConfig={_DEMO_CONFIG}"]
    return [
        *("--values", str(values)),
        *("--set-file", f"experiment.pipelineConfig={_EXPERIMENT / 'pipeline.config'}"),
        *("--set-file", f"experiment.labelMap={_EXPERIMENT / 'label_map.pbtxt'}"),
    ]


def run_helm(*arguments: str, helm: str = "helm") -> subprocess.CompletedProcess[str]:
    """Runs Helm to its end, whatever that is."""
    return subprocess.run([tool(helm), *arguments], capture_output=True, text=True)


def template(chart: Path, *flags: str, helm: str = "helm") -> str:
    """The manifests, in one text; a refusal fails the test with Helm's words."""
    done = run_helm("template", RELEASE, str(chart), "--namespace", NAMESPACE, *flags, helm=helm)
    assert done.returncode == 0, done.stderr
    return done.stdout


@functools.cache
def rendered(name: str, *, helm: str = "helm") -> str:
    """A value set's manifests, as one text."""
    return template(CHART, *flags_of(SETS[name]), helm=helm)


@functools.cache
def rendered_monitoring() -> str:
    """Those of the chart that is installed once for a cluster."""
    return template(MONITORING)


def manifests(text: str) -> list[Manifest]:
    """The objects of a rendered text."""
    return [document for document in yaml.safe_load_all(text) if document]


@functools.cache
def objects(name: str) -> Mapping[tuple[str, str], Manifest]:
    """A value set's objects by kind and the end of their names: ("Deployment", "evaluator")."""
    return {
        (document["kind"], _part(document["metadata"]["name"])): document
        for document in manifests(rendered(name))
    }


def _part(name: str) -> str:
    return next((part for part in ("trainer", "evaluator", "tensorboard") if part in name), "")


def pod_specs(name: str) -> dict[str, Manifest]:
    """Specs of all pods of a value set, by the object that makes them."""
    specs = {}
    for document in manifests(rendered(name)):
        spec = document.get("spec", {})
        if document["kind"] == "JobSet":
            spec = spec["replicatedJobs"][0]["template"]["spec"]
        if document["kind"] == "Pod":
            specs["Pod"] = spec
        elif "template" in spec:
            specs[f"{document['kind']} {document['metadata']['name']}"] = spec["template"]["spec"]
    return specs


def trainer_job(name: str, *, flags: tuple[str, ...] = ()) -> Manifest:
    """The trainer's Job of a value set, with more flags for Helm."""
    text = template(CHART, *flags_of(SETS[name]), *flags) if flags else rendered(name)
    return next(document for document in manifests(text) if document["kind"] == "Job")
