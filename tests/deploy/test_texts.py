"""Names and texts reach the cluster as they were meant, whatever they look like in YAML."""

import json
import re

import pytest

from tests.deploy.rendering import (
    CHART,
    HELMS,
    MONITORING,
    NEEDS_TOOLS,
    SETS,
    flags_of,
    manifests,
    run_helm,
)

pytestmark = NEEDS_TOOLS

_PATH = 'label_map_path: "/etc/tandem/label_map.pbtxt"'


def _json(name, release, *flags):
    """All objects of a release in a namespace of its name, without hashes."""
    arguments = ("template", release, str(CHART), "--namespace", release, *flags_of(SETS[name]))
    done = run_helm(*arguments, *flags)
    assert done.returncode == 0, done.stderr
    return re.sub(r"-trainer-[0-9a-f]{8}", "-trainer", json.dumps(manifests(done.stdout)))


@pytest.mark.parametrize("name", ["pvc", "operator", "gmp", "jobset"])
def test_a_name_that_yaml_takes_for_something_else_stays_a_name(name):
    for word in ("true", "null"):
        assert _json(name, word) == _json(name, "zorro").replace("zorro", word)
    dated = ("--set", "nameOverride=fox")
    expected = _json(name, "zorro", *dated).replace("zorro", "20240601")
    assert _json(name, "20240601", *dated) == expected


@pytest.mark.parametrize("kind", ["prometheusRule", "gmpClusterRules"])
def test_the_monitoring_charts_names_stay_names(kind):
    flags = ("--namespace", "123", "--set", f"rules.{kind}.enabled=true")
    done = run_helm("template", "20240601", str(MONITORING), *flags)
    assert done.returncode == 0, done.stderr
    metadata = [document["metadata"] for document in manifests(done.stdout)]
    assert [m["name"] for m in metadata] == [
        *("20240601-tandem-fleet", "20240601-tandem-run"),
        "20240601",
    ]
    assert {m.get("namespace", "123") for m in metadata} == {"123"}


@pytest.mark.parametrize("release", ["20240601", "1st", "9x", "a.b"])
def test_a_name_that_services_cannot_have_is_refused(release):
    done = run_helm("template", release, str(CHART), *flags_of(SETS["cpu"]))
    assert done.returncode != 0
    assert f"the release's name is {release}" in done.stderr
    assert "nameOverride" in done.stderr


@pytest.mark.parametrize("helm", HELMS)
def test_every_character_of_the_experiment_arrives(helm, tmp_path):
    config = "  # \r \x7f \x85 \u2028 \ufeff \U0001f98a ' \" \\ \t<&>\r\nmodel { } \n\n" + _PATH
    label_map = "\n\u2029item { name: 'Stra\xdfe' }\n\n"
    (tmp_path / "config").write_bytes(config.encode())
    (tmp_path / "map").write_bytes(label_map.encode())
    files = f"experiment.pipelineConfig={tmp_path}/config,experiment.labelMap={tmp_path}/map"
    flags = ("--values", str(SETS["cpu"]), "--set-file", files)
    done = run_helm("template", "fox", str(CHART), *flags, helm=helm)
    assert done.returncode == 0, done.stderr
    made = next(d for d in manifests(done.stdout) if d["kind"] == "ConfigMap")
    assert made["data"] == {"pipeline.config": config, "label_map.pbtxt": label_map}


@pytest.mark.parametrize(
    "field",
    [
        'label_map_path: "a"',
        "label_map_path:'a'",
        "label_map_path :\n  'a'",
        'label_map_path: "a" "b"',
        'label_map_path: "a"  # the first half\n  \'b\'"c"',
        r"label_map_path: 'it\'s'",
        r'label_map_path: "a\\" "\"b\""',
        'label_map_path: "it\'s"',
    ],
)
def test_a_label_map_path_is_replaced_as_a_whole(field, tmp_path):
    rest = "tf_record_input_reader { input_path: \"it's\" } # 'one' more"
    (tmp_path / "config").write_text(f"train_input_reader {{ {field} {rest}\n}}")
    flags = (*flags_of(SETS["cpu"]), "--set-file", f"experiment.pipelineConfig={tmp_path}/config")
    done = run_helm("template", "fox", str(CHART), *flags)
    assert done.returncode == 0, done.stderr
    made = next(d for d in manifests(done.stdout) if d["kind"] == "ConfigMap")
    assert made["data"]["pipeline.config"] == f"train_input_reader {{ {_PATH} {rest}\n}}"
