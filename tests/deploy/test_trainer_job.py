"""The trainer's Job: which change makes a new one, what ends it, how long it may take to stop."""

import json

import pytest

from tests.deploy.rendering import (
    CHART,
    NAMESPACE,
    NEEDS_TOOLS,
    RELEASE,
    SETS,
    flags_of,
    manifests,
    objects,
    rendered,
    template,
    trainer_job,
)

pytestmark = NEEDS_TOOLS


def _name(name, *settings):
    flags = tuple(flag for setting in settings for flag in ("--set", setting))
    return trainer_job(name, flags=flags)["metadata"]["name"]


@pytest.mark.parametrize(
    "setting",
    [
        "trainer.settings.checkpointEveryN=5",
        "trainer.resources.limits.memory=17Gi",
        "trainer.spot=true",
        "trainer.podLabels.stage=two",
        "trainer.kueue.queueName=other",
        "image.tag=0.1.1",
        "experiment.overrides[0]=train_config {}",
        "runStore.url=gs://experiments/other",
        "serviceAccount.name=other",
    ],
)
def test_a_change_of_what_the_trainer_is_makes_a_new_job(setting):
    assert _name("cpu", setting) != _name("cpu")


@pytest.mark.parametrize(
    "setting",
    [
        "commonLabels.team=vision",
        "commonAnnotations.team=vision",
        "trainer.labels.team=vision",
        "trainer.backoffLimit=3",
        "trainer.ttlSecondsAfterFinished=60",
        "trainer.activeDeadlineSeconds=60",
        "evaluator.resources.limits.memory=9Gi",
        "evaluator.settings.pollInterval=3",
        "tensorboard.enabled=false",
        "monitoring.podMonitor.enabled=true",
        "networkPolicy.enabled=false",
    ],
)
def test_any_other_change_leaves_the_job_alone(setting):
    changed = trainer_job("cpu", flags=("--set", setting))
    assert changed["metadata"]["name"] == trainer_job("cpu")["metadata"]["name"]
    assert changed["spec"]["template"] == trainer_job("cpu")["spec"]["template"]


def test_a_new_version_of_the_chart_alone_leaves_the_job_alone(tmp_path):
    newer = tmp_path / "tandem"
    newer.mkdir()
    for path in CHART.rglob("*"):
        if path.is_file():
            copy = newer / path.relative_to(CHART)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
    chart = newer / "Chart.yaml"
    chart.write_text(chart.read_text().replace("version: 0.1.0\nappV", "version: 0.1.1\nappV"))
    flags = [*flags_of(SETS["cpu"]), "--set", "image.tag=dev"]
    jobs = [
        next(d for d in manifests(template(path, *flags)) if d["kind"] == "Job")
        for path in (CHART, newer)
    ]
    assert jobs[0]["metadata"]["labels"] != jobs[1]["metadata"]["labels"]
    assert jobs[0]["metadata"]["name"] == jobs[1]["metadata"]["name"]
    assert jobs[0]["spec"] == jobs[1]["spec"]


def test_names_stay_within_what_kubernetes_allows():
    long = f"nameOverride={'a' * 53}"
    text = template(CHART, *flags_of(SETS["jobset"]), "--set", long)
    jobset = next(d for d in manifests(text) if d["kind"] == "JobSet")
    pod = f"{jobset['metadata']['name']}-workers-0-99-abcde"
    assert len(pod) <= 63
    other = template(CHART, *flags_of(SETS["jobset"]), "--set", f"{long[:-1]}b")
    assert jobset["metadata"]["name"].split("-trainer-")[0] not in other


@pytest.mark.parametrize("name", ["cpu", "workers", "jobset"])
def test_stops_that_save_do_not_count_and_what_cannot_succeed_ends_at_once(name):
    job = next(d for d in manifests(rendered(name)) if d["kind"] in ("Job", "JobSet"))
    spec = job["spec"]
    if job["kind"] == "JobSet":
        assert spec["failurePolicy"]["rules"] == [
            {
                "name": "hopeless",
                "action": "FailJobSet",
                "onJobFailureReasons": ["PodFailurePolicy"],
            }
        ]
        spec = spec["replicatedJobs"][0]["template"]["spec"]
    assert spec["podReplacementPolicy"] == "Failed"
    assert spec["template"]["spec"]["restartPolicy"] == "Never"
    rules = spec["podFailurePolicy"]["rules"]
    # The first rule that fits counts: a pod that a drain stops ends with 42, or is killed.
    assert [rule["action"] for rule in rules] == ["Ignore", "Ignore", "FailJob"]
    assert rules[0]["onPodConditions"][0]["type"] == "DisruptionTarget"
    assert rules[1]["onExitCodes"]["values"] == [42]
    assert rules[2]["onExitCodes"]["values"] == [2, 3, 6]


def test_failures_are_counted_once_and_by_the_jobset_where_there_is_one():
    assert trainer_job("cpu")["spec"]["backoffLimit"] == 6
    first, other = (
        next(
            d
            for d in manifests(template(CHART, *flags_of(SETS["jobset"]), "--set", setting))
            if d["kind"] == "JobSet"
        )
        for setting in ("trainer.backoffLimit=6", "trainer.backoffLimit=3")
    )
    assert first["spec"]["failurePolicy"]["maxRestarts"] == 6
    assert other["spec"]["failurePolicy"]["maxRestarts"] == 3
    assert first["spec"]["replicatedJobs"][0]["template"]["spec"]["backoffLimit"] == 0
    # A JobSet's failurePolicy can't be changed in place.
    assert first["metadata"]["name"] != other["metadata"]["name"]


@pytest.mark.parametrize(
    ("settings", "grace", "deadline"),
    [
        ((), 30, 25),
        (("trainer.spot=true",), 15, 12),
        (("trainer.terminationGracePeriodSeconds=120",), 120, 115),
        (("trainer.spot=true", "trainer.terminationGracePeriodSeconds=60"), 60, 12),
        (("trainer.terminationDeadlineSeconds=10",), 30, 10),
    ],
)
def test_the_last_checkpoint_has_time_before_the_kill(settings, grace, deadline):
    flags = tuple(flag for setting in settings for flag in ("--set", setting))
    pod = trainer_job("cpu", flags=flags)["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] == grace
    assert f"--termination-deadline={deadline}" in pod["containers"][0]["args"]


def test_the_next_job_of_the_same_release_may_go_on_at_once():
    arguments = trainer_job("cpu")["spec"]["template"]["spec"]["containers"][0]["args"]
    assert f"--owner=release {NAMESPACE}/{RELEASE}" in arguments


@pytest.mark.parametrize(
    ("name", "pods", "chips"), [("tpu-one-host", 1, 8), ("tpu-four-hosts", 4, 4)]
)
def test_a_tpu_slice_has_a_pod_for_each_host(name, pods, chips):
    spec = trainer_job(name)["spec"]
    assert spec.get("completions", 1) == spec.get("parallelism", 1) == pods
    container = spec["template"]["spec"]["containers"][0]
    assert container["resources"]["limits"]["google.com/tpu"] == chips


@pytest.mark.parametrize("name", ["workers", "jobset"])
def test_workers_are_told_each_other_by_the_names_that_they_have(name):
    job = next(d for d in manifests(rendered(name)) if d["kind"] in ("Job", "JobSet"))
    if job["kind"] == "JobSet":
        child = f"{job['metadata']['name']}-workers-0"
        domain = job["spec"]["network"]["subdomain"]
        spec = job["spec"]["replicatedJobs"][0]["template"]["spec"]
    else:
        child, spec = job["metadata"]["name"], job["spec"]
        domain = spec["template"]["spec"]["subdomain"]
        service = objects(name)["Service", "trainer"]
        assert (service["metadata"]["name"], service["spec"]["clusterIP"]) == (domain, "None")
    environment = {e["name"]: e for e in spec["template"]["spec"]["containers"][0]["env"]}
    text = environment["TF_CONFIG"]["value"].replace("$(WORKER_INDEX)", "1")
    told = json.loads(text)
    assert told["task"] == {"type": "worker", "index": 1}
    assert told["cluster"]["worker"] == [
        f"{child}-{index}.{domain}:2222" for index in range(spec["completions"])
    ]
    assert list(environment).index("WORKER_INDEX") < list(environment).index("TF_CONFIG")


def test_only_the_trainer_waits_in_the_queue():
    queued = [
        document["kind"]
        for document in manifests(rendered("kueue"))
        if "kueue.x-k8s.io/queue-name" in json.dumps(document)
    ]
    assert queued == ["Job"]
