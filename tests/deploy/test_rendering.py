"""What Helm makes of each value set."""

import subprocess

import pytest

from tests.deploy.rendering import (
    CHART,
    GOLDEN,
    HELMS,
    MONITORING,
    NEEDS_TOOLS,
    SETS,
    flags_of,
    manifests,
    rendered,
    rendered_monitoring,
    run_helm,
    tool,
)

pytestmark = NEEDS_TOOLS

# Kinds of others, which Kubernetes' own schemas don't know.
_CUSTOM_GROUPS = (
    "jobset.x-k8s.io/",
    "monitoring.coreos.com/",
    "monitoring.googleapis.com/",
)


@pytest.mark.parametrize(
    ("name", "helm"), [*((name, "helm") for name in SETS), ("everything", "helm3")]
)
def test_lint_finds_nothing(name, helm):
    done = run_helm("lint", "--strict", str(CHART), *flags_of(SETS[name]), helm=helm)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stdout + done.stderr


@pytest.mark.parametrize("helm", HELMS)
def test_lint_finds_nothing_in_the_monitoring_chart(helm):
    done = run_helm("lint", "--strict", str(MONITORING), helm=helm)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stdout + done.stderr


@pytest.mark.parametrize("name", SETS)
def test_helm_3_and_4_render_the_same(name):
    assert manifests(rendered(name, helm="helm3")) == manifests(rendered(name))


@pytest.mark.parametrize("name", SETS)
def test_a_render_is_as_it_was_reviewed(name):
    reviewed = GOLDEN / f"{name}.yaml"
    assert reviewed.exists(), "python -m tests.deploy.regenerate, then look at it"
    assert rendered(name).splitlines() == reviewed.read_text().splitlines(), (
        "python -m tests.deploy.regenerate, then look at git diff"
    )


def test_the_monitoring_render_is_as_it_was_reviewed():
    reviewed = (GOLDEN / "monitoring.yaml").read_text()
    assert rendered_monitoring().splitlines() == reviewed.splitlines()


def test_no_reviewed_render_is_left_over():
    assert {path.stem for path in GOLDEN.glob("*.yaml")} == {*SETS, "monitoring"}


@pytest.mark.parametrize("version", ["1.30", "1.37"])
def test_all_objects_fit_the_schemas_of_kubernetes(version, tmp_path):
    for name in SETS:
        own = [
            text
            for text in rendered(name).split("\n---\n")
            if not manifests(text)[0]["apiVersion"].startswith(_CUSTOM_GROUPS)
        ]
        assert len(own) >= 3
        (tmp_path / f"{name}.yaml").write_text("\n---\n".join(own))
    (tmp_path / "monitoring.yaml").write_text(rendered_monitoring())
    files = sorted(tmp_path.glob("*.yaml"))
    done = subprocess.run(
        [tool("kubernetes-validate"), "-k", version, "--strict", *files],
        capture_output=True,
        text=True,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "WARN" not in said, said
    assert said.count("INFO") >= len(files), said


@pytest.mark.parametrize("helm", HELMS)
def test_an_older_kubernetes_is_refused(helm):
    done = run_helm(
        "template", "x", str(CHART), "--kube-version", "1.29.0", *flags_of(SETS["cpu"]), helm=helm
    )
    assert done.returncode != 0
    assert "kubeVersion" in done.stderr
