"""The charts' alerts, on made-up histories (`alerts/`)."""

import re

import pytest
import yaml

from tandem.telemetry.catalogue import BOTH, EVALUATOR, STORE, TRAINER
from tests.deploy.alerting import (
    alerts,
    as_promtool_test,
    fleet_rules,
    nothing_fires,
    promtool_test,
    rules_of,
    run_rules,
    scenarios,
)
from tests.deploy.rendering import (
    CHART,
    CHECKOUT,
    NAMESPACE,
    NEEDS_TOOLS,
    RELEASE,
    SETS,
    flags_of,
    manifests,
    objects,
    rendered,
    run_helm,
    template,
    trainer_job,
)

pytestmark = NEEDS_TOOLS

_FILES = ("evaluation", "fleet", "healthy", "surroundings", "training")
_FIRST_SET = CHECKOUT.parent / "shared/alerts/rules_test.yaml"

# Of kube-state-metrics and of Prometheus itself.
_METRICS_OF_OTHERS = {
    "kube_deployment_spec_replicas",
    "kube_job_complete",
    "kube_job_failed",
    "kube_job_info",
    "kube_job_status_active",
    "kube_job_status_suspended",
    "kube_pod_container_status_restarts_total",
    "kube_pod_status_phase",
    "kube_pod_status_unschedulable",
    "up",
}


def _all_rules():
    return (*run_rules(), *fleet_rules())


def test_alerts_look_at_metrics_that_there_are():
    recorded = {rule["record"] for rule in run_rules() if "record" in rule}
    used = {name for rule in _all_rules() for name in re.findall(r"([a-z_][\w:]*)\{", rule["expr"])}
    exported = {made.name for made in (*TRAINER, *EVALUATOR, *BOTH, *STORE)}
    assert used - exported - recorded <= _METRICS_OF_OTHERS
    assert {name for name in used if name.startswith("tandem:")} <= recorded


def test_every_rule_of_a_run_selects_that_run_alone():
    job = trainer_job("operator")["metadata"]["name"]
    for rule in run_rules():
        selectors = re.findall(r"([\w:]+)\{([^}]*)\}", rule["expr"])
        assert selectors
        for metric, matchers in selectors:
            assert f'namespace="{NAMESPACE}"' in matchers, rule
            if metric.startswith("kube_"):
                assert any(name in matchers for name in (job, f"{RELEASE}-evaluator")), rule
            else:
                assert f'run="{RELEASE}"' in matchers, rule


@pytest.mark.parametrize("file", _FILES)
def test_alerts_fire_when_they_should_and_only_then(file, tmp_path):
    chosen = [scenario for scenario in scenarios() if scenario.file == file]
    rules = list(rules_of(chosen[0]))
    names = {rule["alert"]: [rule["alert"]] for rule in alerts(tuple(rules))}
    tests = [as_promtool_test(scenario, names=names) for scenario in chosen]
    if file == "healthy":
        for scenario, test in zip(chosen, tests, strict=True):
            test["promql_expr_test"] = [nothing_fires(scenario)]
    code, said = promtool_test(tmp_path, rules, tests)
    assert code == 0, said


def test_every_alert_has_a_scenario_in_which_it_fires_after_it_was_quiet():
    assert {scenario.file for scenario in scenarios()} == set(_FILES)
    fired = {
        alert
        for scenario in scenarios()
        for alert, wanted in scenario.expect.items()
        if "fires" in wanted and "quiet" in wanted
    }
    assert fired == {rule["alert"] for rule in alerts(_all_rules())}


def test_every_alert_says_what_happened_and_what_to_do():
    for rule in alerts(_all_rules()):
        assert set(rule["annotations"]) == {"summary", "action", "runbook_url"}
        assert rule["annotations"]["action"].startswith(("kubectl ", "tandem "))
        assert rule["annotations"]["runbook_url"] == f"docs/runbook.md#{rule['alert'].lower()}"
        assert rule["labels"]["severity"] in ("page", "ticket")


def test_the_runbooks_place_is_a_value():
    (made,) = [d for d in manifests(rendered("gmp")) if d["kind"] == "Rules"]
    urls = {r["annotations"]["runbook_url"] for r in alerts(made["spec"]["groups"][0]["rules"])}
    assert "https://runbooks.example/tandem.md#tandemtrainstalled" in urls


def test_both_kinds_of_rules_hold_the_same():
    kinds = {"operator": "PrometheusRule", "gmp": "Rules"}
    told = []
    for name, kind in kinds.items():
        (made,) = [d for d in manifests(rendered(name)) if d["kind"] == kind]
        (group,) = made["spec"]["groups"]
        job = trainer_job(name)["metadata"]["name"]
        told.append(
            [
                (r.get("alert") or r["record"], r.get("for"), r["expr"].replace(job, "JOB"))
                for r in group["rules"]
            ]
        )
    assert told[0] == told[1]


def _names(*flags):
    text = template(CHART, *flags_of(SETS["operator"]), *flags)
    made = next(d for d in manifests(text) if d["kind"] == "PrometheusRule")
    return {rule["alert"]: rule["expr"] for rule in alerts(made["spec"]["groups"][0]["rules"])}


def test_a_run_without_an_evaluator_has_no_alerts_on_one():
    without = _names("--set", "evaluator.enabled=false")
    assert not {name for name in without if "Eval" in name or "Metric" in name}
    assert {"TandemTrainStalled", "TandemGcsErrorFastBurn"} <= set(without)


def test_waiting_for_quota_is_waiting_where_a_queue_suspends_and_not_where_people_do():
    assert "kube_job_status_suspended" in _names()["TandemTrainerNotStarted"]
    queued = _names("--set", "trainer.kueue.queueName=research")
    assert "kube_job_status_suspended" not in queued["TandemTrainerNotStarted"]


def test_images_are_compared_where_trainer_and_evaluator_are_meant_to_run_one():
    one = "version, image"
    assert one in _names()["TandemImagesDiffer"]
    accelerated = "trainer.accelerator.type=gpu,trainer.accelerator.gpu.model=nvidia-l4"
    assert one in _names("--set", accelerated)["TandemImagesDiffer"]
    pinned = _names("--set", "evaluator.image.tag=special")["TandemImagesDiffer"]
    assert one not in pinned
    assert "version" in pinned


def test_processes_are_told_their_image():
    for kind, part in (("Job", "trainer"), ("Deployment", "evaluator")):
        (container,) = objects("gpu")[kind, part]["spec"]["template"]["spec"]["containers"]
        variables = {variable["name"]: variable.get("value") for variable in container["env"]}
        assert variables["TANDEM_IMAGE"] == container["image"]


@pytest.mark.skipif(not _FIRST_SET.exists(), reason=f"there is no {_FIRST_SET}")
@pytest.mark.parametrize("number", range(8))
def test_the_first_set_of_scenarios_holds_for_the_charts_alerts(number, tmp_path):
    test = yaml.safe_load(_FIRST_SET.read_text())["tests"][number]
    run = re.search(r'run="(\w)"', test["input_series"][0]["series"])[1]
    done = run_helm(
        *("template", run, str(CHART), "--namespace", "ml"), *flags_of(SETS["operator"])
    )
    assert done.returncode == 0, done.stderr
    made = next(d for d in manifests(done.stdout) if d["kind"] == "PrometheusRule")
    code, said = promtool_test(tmp_path, made["spec"]["groups"][0]["rules"], [test])
    assert code == 0, said
