"""Values that can't be right are refused by name, before anything is in the cluster.

Each file of `wrong/` begins with what the message must hold.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.deploy.rendering import (
    CHART,
    HELMS,
    HERE,
    MONITORING,
    NEEDS_TOOLS,
    SETS,
    flags_of,
    run_helm,
)

pytestmark = NEEDS_TOOLS

_WRONG = sorted((HERE / "wrong").glob("*.yaml"))
_MARK = "# expect: "


def _expected(path: Path) -> list[str]:
    lines = path.read_text().splitlines()
    return [line.removeprefix(_MARK) for line in lines if line.startswith(_MARK)]


def test_there_are_many():
    assert len(_WRONG) >= 20


@pytest.mark.parametrize("helm", HELMS)
@pytest.mark.parametrize("path", _WRONG, ids=lambda path: path.stem)
def test_a_wrong_value_is_refused_by_name(path, helm):
    flags = [*flags_of(SETS["cpu"]), "--values", str(path)]
    done = run_helm("template", "raccoon", str(CHART), *flags, helm=helm)
    assert done.returncode != 0, "it was accepted"
    assert _expected(path)
    for words in _expected(path):
        assert words in done.stderr


@pytest.mark.parametrize(
    ("left_out", "words"),
    [
        ("experiment.pipelineConfig", "--set-file experiment.pipelineConfig=pipeline.config"),
        ("runStore.url", "gs://BUCKET/FOLDER"),
        ("image.repository", "where your cluster pulls the image from"),
    ],
)
def test_what_is_required_is_asked_for(left_out, words):
    flags = [*flags_of(SETS["cpu"]), "--set", f"{left_out}="]
    if left_out == "experiment.pipelineConfig":
        flags = ["--values", str(SETS["cpu"])]
    done = run_helm("template", "raccoon", str(CHART), *flags)
    assert done.returncode != 0
    assert left_out in done.stderr
    assert words in done.stderr


def test_a_label_map_that_no_reader_names_is_refused():
    flags = ["--values", str(SETS["cpu"]), "--set", "experiment.labelMap=item {}"]
    flags += ["--set", "experiment.pipelineConfig=model {}"]
    done = run_helm("template", "raccoon", str(CHART), *flags)
    assert done.returncode != 0
    assert "experiment.labelMap is given, but experiment.pipelineConfig has no" in done.stderr


def _described(chart: Path) -> Iterator[tuple[str, ...]]:
    """Paths of all values that have a default and a meaning of their own, objects included."""
    schema = json.loads((chart / "values.schema.json").read_text())
    defaults = yaml.safe_load((chart / "values.yaml").read_text())

    def below(node, values, path):
        for name in node.get("properties", {}):
            if name in values:
                yield (*path, name)
                if isinstance(values[name], dict):
                    yield from below(node["properties"][name], values[name], (*path, name))

    return below(schema, defaults, ())


@pytest.mark.parametrize("helm", HELMS)
@pytest.mark.parametrize(
    ("chart", "depth"),
    [*((CHART, depth) for depth in (1, 2, 3, 4)), *((MONITORING, depth) for depth in (1, 2, 3))],
)
def test_a_value_that_null_removes_is_missed_by_name(chart, depth, helm):
    paths = [path for path in _described(chart) if len(path) == depth]
    assert paths
    nulls = ",".join(f"{'.'.join(path)}=null" for path in paths)
    done = run_helm("template", "raccoon", str(chart), "--set", nulls, helm=helm)
    missed = {
        (*(part for part in parent.split("/") if part), name)
        for parent, names in re.findall(
            r"- at '([^']*)': missing propert(?:y|ies) (.*)", done.stderr
        )
        for name in re.findall(r"'([^']+)'", names)
    }
    assert missed == set(paths)
