"""What the runbook tells people to do at night can be done: commands, names, metrics, links."""

import json
import re
import shlex
import subprocess

import pytest

from services.ctl.__main__ import _parser
from tandem.telemetry.catalogue import BOTH, EVALUATOR, STORE, TRAINER
from tests.deploy.alerting import alerts, fleet_rules, run_rules
from tests.deploy.rendering import (
    CHART,
    CHECKOUT,
    NEEDS_TOOLS,
    RELEASE,
    manifests,
    rendered,
    tool,
)

_RUNBOOK = (CHECKOUT / "docs/runbook.md").read_text()
_SECTIONS = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", _RUNBOOK, re.MULTILINE | re.DOTALL))
_PARTS = ("Meaning", "Impact", "Confirm", "Cause", "Fix|fix", "Worked")

# What a command's words in capitals stand for; the first that fits is put in.
_STANDS_FOR = {
    "STEP-ATTEMPT": "1000-2",
    "STEP": "1000",
    "RUN": "gs://bucket/runs/raccoon",
    "NAMESPACE": "research",
    "RELEASE": RELEASE,
    "POD": f"{RELEASE}-trainer-0a1b2c3d-b5x7q",
    "NODE": "node-1",
    "CHART": str(CHART),
}


def _commands(program):
    blocks = "\n".join(re.findall(r"```sh\n(.*?)```", _RUNBOOK, re.DOTALL))
    inline = re.findall(r"`([^`\n]+)`", _RUNBOOK)
    lines = [line for line in [*blocks.splitlines(), *inline] if line.startswith(f"{program} ")]
    found = sorted({line for line in lines if "..." not in line and not line.endswith("--")})
    assert len(found) >= 2
    return found


def _words(command):
    for word, meant in _STANDS_FOR.items():
        command = re.sub(rf"(?<![A-Z.]){word}(?![A-Z:])", meant, command)
    return shlex.split(command)


@pytest.mark.parametrize("command", _commands("tandem"))
def test_tandem_understands_every_command(command):
    arguments = _words(command)[1:]
    if arguments == ["status"]:
        arguments.append("--all")
    assert callable(_parser().parse_args(arguments).run_command)


@NEEDS_TOOLS
@pytest.mark.parametrize("command", _commands("kubectl"))
def test_kubectl_understands_every_command_and_only_misses_a_cluster(command, tmp_path):
    nowhere = ("--server=http://127.0.0.1:1", f"--cache-dir={tmp_path}", "--request-timeout=1s")
    done = subprocess.run(
        [tool("kubectl"), *_words(command)[1:], *nowhere],
        capture_output=True,
        text=True,
        env={"HOME": str(tmp_path), "KUBECONFIG": "/dev/null"},
    )
    assert "127.0.0.1:1 was refused" in done.stderr, done.stderr


@NEEDS_TOOLS
def test_kubectl_is_given_names_and_labels_of_the_charts_objects():
    objects = manifests(rendered("pvc"))
    names = {f"{d['kind'].lower()}/{d['metadata']['name']}" for d in objects}
    labels = [d["metadata"]["labels"] for d in objects]
    labels += [
        d["spec"]["template"]["metadata"]["labels"]
        for d in objects
        if d["kind"] in ("Job", "Deployment")
    ]
    for command in _commands("kubectl"):
        words = _words(command)
        for name in re.findall(r"\b(?:deployment|job|service)/[-\w]+", " ".join(words)):
            assert name in names, command
        if "-l" in words:
            wanted = dict(pair.split("=") for pair in words[words.index("-l") + 1].split(","))
            assert any(wanted.items() <= given.items() for given in labels), command


def test_every_metric_that_it_names_exists():
    named = set(re.findall(r"\btandem_\w+", _RUNBOOK))
    assert named
    assert named <= {made.name for made in (*TRAINER, *EVALUATOR, *BOTH, *STORE)}


def test_every_value_that_it_names_is_one_of_the_charts():
    schema = json.loads((CHART / "values.schema.json").read_text())
    tops = "|".join(schema["properties"])
    named = set(re.findall(rf"(?<![\w.])(?:{tops})\.[a-zA-Z.]+[a-zA-Z]", _RUNBOOK))
    assert len(named) >= 10
    for path in named:
        node = schema
        for name in path.split("."):
            if "properties" not in node:
                break  # Kubernetes' own, which the schema leaves to the cluster
            assert name in node["properties"], path
            node = node["properties"][name]


@NEEDS_TOOLS
def test_there_is_a_section_for_every_alert_and_every_url_leads_to_one():
    all_alerts = alerts((*run_rules(), *fleet_rules()))
    assert set(_SECTIONS) == {rule["alert"] for rule in all_alerts}
    for rule in all_alerts:
        anchor = rule["annotations"]["runbook_url"].partition("#")[2]
        assert anchor == rule["alert"].lower()


@pytest.mark.parametrize("name", _SECTIONS)
def test_every_section_answers_the_six_questions(name):
    for part in _PARTS:
        assert re.search(rf"^\*\*[^*]*({part})[^*]*\*\*", _SECTIONS[name], re.MULTILINE), part


def test_links_to_sections_lead_somewhere():
    anchors = {name.lower() for name in _SECTIONS}
    assert set(re.findall(r"\(#(\w+)\)", _RUNBOOK)) <= anchors
    for page in (CHECKOUT / "docs").glob("*.md"):
        assert set(re.findall(r"runbook\.md#(\w+)", page.read_text())) <= anchors, page.name
