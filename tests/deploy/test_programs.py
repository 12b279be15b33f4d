"""The chart and the programs agree: flags, versions, commands, exit codes."""

import json
import re
import subprocess
import sys

import pytest
import yaml
from prometheus_client import CollectorRegistry

import tandem
from services.ctl.__main__ import _parser
from services.evaluator.settings import EvaluatorSettings
from services.exits import Exit
from services.settings import read_settings
from services.trainer.settings import TrainerSettings
from tandem.telemetry.health import Health
from tandem.telemetry.server import serve
from tandem.telemetry.trainer_metrics import TrainerMetrics
from tests.deploy.rendering import (
    CHART,
    MONITORING,
    NAMESPACE,
    NEEDS_TOOLS,
    SETS,
    objects,
    pod_specs,
    trainer_job,
)

_SETTINGS = {"trainer": TrainerSettings, "evaluator": EvaluatorSettings}

# The chart's own to say.
_SET_BY_THE_CHART = {
    *("run", "config", "override", "metrics_host", "metrics_port", "log_format", "log_level"),
    *("owner", "termination_deadline", "scratch_dir", "on_end"),
    *("namespace", "pod", "job", "deployment", "trainer_job"),
}


def _snake(name):
    return re.sub(r"(?<=[a-z])([A-Z])|([A-Z])(?=[A-Z][a-z])", r"_\1\2", name).lower()


def _schema(chart):
    return json.loads((chart / "values.schema.json").read_text())


@pytest.mark.parametrize("chart", [CHART, MONITORING], ids=lambda chart: chart.name)
def test_chart_package_and_image_have_one_version(chart):
    described = yaml.safe_load((chart / "Chart.yaml").read_text())
    assert described["version"] == described["appVersion"] == tandem.__version__


@pytest.mark.parametrize("program", _SETTINGS)
def test_every_setting_of_a_program_can_be_given_as_a_value(program):
    node = _schema(CHART)["properties"][program]["properties"]["settings"]
    offered = {
        re.sub(r"every_nsteps", "every_n_steps", _snake(name)) for name in node["properties"]
    }
    assert offered == set(_SETTINGS[program].model_fields) - _SET_BY_THE_CHART


@NEEDS_TOOLS
@pytest.mark.parametrize("name", SETS)
def test_programs_accept_the_flags_and_variables_that_they_are_given(name):
    for spec in pod_specs(name).values():
        for container in spec["containers"]:
            if container["name"] in _SETTINGS:
                _read(container)


@NEEDS_TOOLS
def test_processes_know_their_objects_in_the_cluster():
    job = trainer_job("cpu")
    settings = _read(job["spec"]["template"]["spec"]["containers"][0])
    assert (settings.namespace, settings.job) == (NAMESPACE, job["metadata"]["name"])
    deployment = objects("cpu")["Deployment", "evaluator"]
    settings = _read(deployment["spec"]["template"]["spec"]["containers"][0])
    assert settings.deployment == deployment["metadata"]["name"]
    assert settings.trainer_job == job["metadata"]["name"]
    assert settings.on_end == "scale-to-zero"
    rules = objects("cpu")["Role", ""]["rules"]
    named = {name for rule in rules for name in rule.get("resourceNames", [])}
    assert named == {job["metadata"]["name"], deployment["metadata"]["name"]}


@NEEDS_TOOLS
def test_values_reach_the_programs_as_they_were_meant():
    job = trainer_job("gpu")["spec"]["template"]["spec"]["containers"][0]
    settings = _read(job)
    assert settings.num_train_steps == 1_000_000
    assert settings.keep_every_n_steps == 10_000
    assert settings.keep_best == ("2:Loss/total_loss", "1")
    assert settings.log_interval == 2.5
    assert settings.takeover is False
    everything = pod_specs("everything")
    evaluator = next(s for made_by, s in everything.items() if made_by.endswith("evaluator"))
    settings = _read(evaluator["containers"][0])
    assert settings.adopt is True
    assert settings.metrics_host == "::"
    assert settings.override[0] == "train_config { batch_size: 16 }"


def _read(container):
    program = container["name"]
    return read_settings(
        _SETTINGS[program],
        program=container["command"][0],
        prefix=f"TANDEM_{program.upper()}_",
        arguments=container["args"],
        environment={variable["name"]: variable.get("value", "") for variable in container["env"]},
    )


@NEEDS_TOOLS
@pytest.mark.parametrize("name", sorted(set(SETS) - {"bare"}))
def test_the_test_pod_calls_commands_that_there_are(name):
    called = [c for c in pod_specs(name)["Pod"]["containers"] if c.get("command") == ["tandem"]]
    assert [container["name"] for container in called] == ["config", "store"]
    for container in called:
        _parser().parse_args(container["args"])


def test_the_test_pod_reads_metrics_and_says_what_it_found():
    registry = CollectorRegistry()
    TrainerMetrics(registry)
    server = serve(registry, Health(patience_seconds=1), host="127.0.0.1", port=0)
    try:
        url = f"http://127.0.0.1:{server.port}/metrics"
        good = _read_metrics(f"tandem_run_state={url}")
        foreign = _read_metrics(f"tandem_eval_phase={url}")
    finally:
        server.close()
    assert good.returncode == 0
    assert 'tandem_run_state{state="starting"} 1.0' in good.stdout
    assert foreign.returncode == 1
    assert "it has no tandem_eval_phase" in foreign.stderr
    gone = _read_metrics(f"tandem_run_state={url}")
    assert gone.returncode == 1
    assert "nobody answers" in gone.stderr


def _read_metrics(argument):
    script = (CHART / "files/read_metrics.py").read_text()
    return subprocess.run(
        [sys.executable, "-c", script, "0", argument], capture_output=True, text=True
    )


@NEEDS_TOOLS
def test_the_job_knows_the_exit_codes():
    rules = trainer_job("cpu")["spec"]["podFailurePolicy"]["rules"]
    assert rules[1]["onExitCodes"]["values"] == [Exit.SAVED_RESUME_ME]
    assert rules[2]["onExitCodes"]["values"] == [
        Exit.BAD_INPUT,
        Exit.TRAINING_FAILED,
        Exit.SUPERSEDED,
    ]
