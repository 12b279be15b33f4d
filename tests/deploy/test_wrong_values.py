"""Values that can't be right are refused by name, before anything is in the cluster.

Each file of `wrong/` begins with what the message must hold.
"""

from pathlib import Path

import pytest

from tests.deploy.rendering import CHART, HELMS, HERE, NEEDS_TOOLS, SETS, flags_of, run_helm

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
