"""What holds for every pod of every value set."""

import json

import pytest

from tests.deploy.rendering import (
    CHART,
    NEEDS_TOOLS,
    SETS,
    flags_of,
    manifests,
    objects,
    pod_specs,
    rendered,
    template,
    trainer_job,
)

pytestmark = NEEDS_TOOLS


def _own_containers(spec):
    """Those whose security is the chart's matter, not the values'."""
    containers = spec["containers"] + spec.get("initContainers", [])
    return [c for c in containers if c["name"] not in ("warm-up", "data")]


@pytest.mark.parametrize("name", SETS)
def test_every_pod_is_restricted(name):
    specs = pod_specs(name)
    assert specs
    for spec in specs.values():
        pod = spec["securityContext"]
        assert pod["runAsNonRoot"] is True
        assert pod["runAsUser"] > 0
        assert pod["runAsGroup"] > 0
        assert pod["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in _own_containers(spec):
            security = container["securityContext"]
            assert security["allowPrivilegeEscalation"] is False
            assert security["readOnlyRootFilesystem"] is True
            assert security["capabilities"] == {"drop": ["ALL"]}
            assert "/tmp" in [mount["mountPath"] for mount in container["volumeMounts"]]


@pytest.mark.parametrize("name", SETS)
def test_only_trainer_and_evaluator_hold_a_token_and_only_with_rights(name):
    has_rights = ("Role", "") in objects(name)
    for made_by, spec in pod_specs(name).items():
        may_call = has_rights and "tensorboard" not in made_by and made_by != "Pod"
        assert spec["automountServiceAccountToken"] is may_call, made_by
        assert spec["enableServiceLinks"] is False


@pytest.mark.parametrize("name", SETS)
def test_every_mount_has_its_volume_and_every_volume_its_mount(name):
    for made_by, spec in pod_specs(name).items():
        containers = spec["containers"] + spec.get("initContainers", [])
        mounted = {m["name"] for c in containers for m in c.get("volumeMounts", [])}
        assert mounted == {volume["name"] for volume in spec["volumes"]}, made_by


@pytest.mark.parametrize("name", SETS)
def test_every_object_says_whose_it_is(name):
    for document in manifests(rendered(name)):
        labels = document["metadata"]["labels"]
        assert labels["app.kubernetes.io/name"] == "tandem"
        assert labels["app.kubernetes.io/instance"] == "raccoon"
        assert labels["app.kubernetes.io/managed-by"] == "Helm"
        assert document["metadata"]["namespace"] == "research"


def test_services_and_monitors_select_the_pods_that_they_mean():
    made = objects("operator")
    labels = {
        component: made[kind, component]["spec"]["template"]["metadata"]["labels"]
        for kind, component in (
            ("Job", "trainer"),
            ("Deployment", "evaluator"),
            ("Deployment", "tensorboard"),
        )
    }
    for component, own in labels.items():
        selector = made["Service", component]["spec"]["selector"]
        assert selector.items() <= own.items()
        assert sum(selector.items() <= other.items() for other in labels.values()) == 1
    scraped = made["PodMonitor", ""]["spec"]["selector"]
    chosen = scraped["matchExpressions"][0]["values"]
    assert chosen == ["trainer", "evaluator"]
    assert all(scraped["matchLabels"].items() <= labels[c].items() for c in chosen)


def test_a_changed_label_map_starts_both_processes_anew():
    changed = trainer_job("cpu", flags=("--set-file", f"experiment.labelMap={SETS['cpu']}"))
    assert changed["metadata"]["name"] != trainer_job("cpu")["metadata"]["name"]
    key = "checksum/experiment"
    before = objects("cpu")["Deployment", "evaluator"]["spec"]["template"]["metadata"]
    after = changed["spec"]["template"]["metadata"]["annotations"]
    assert after[key] != before["annotations"][key]
    same = objects("cpu")["Job", "trainer"]["spec"]["template"]["metadata"]["annotations"]
    assert same[key] == before["annotations"][key]


def test_every_label_map_path_names_the_map_that_is_mounted():
    config = objects("cpu")["ConfigMap", ""]["data"]["pipeline.config"]
    assert config.count('label_map_path: "/etc/tandem/label_map.pbtxt"') == 2
    assert "PATH_TO_BE_CONFIGURED" not in config
    assert "annotations/" not in config


def test_a_volume_of_the_runs_own_outlives_the_release_unless_told_otherwise():
    kept = objects("pvc")["PersistentVolumeClaim", ""]["metadata"]
    assert kept["annotations"] == {"helm.sh/resource-policy": "keep"}
    assert "annotations" not in objects("kind")["PersistentVolumeClaim", ""]["metadata"]
    assert ("PersistentVolumeClaim", "") not in objects("existing-claim")


@pytest.mark.parametrize(
    ("name", "trainer", "evaluator"),
    [
        ("cpu", "registry.example/tandem:0.1.0-cpu", "registry.example/tandem:0.1.0-cpu"),
        ("tpu-one-host", "registry.example/tandem:0.1.0-tpu", "registry.example/tandem:0.1.0-cpu"),
        ("kind", "localhost/tandem:dev", "localhost/tandem:dev"),
    ],
)
def test_images_follow_the_accelerator_unless_a_tag_is_given(name, trainer, evaluator):
    specs = {kind.split()[0] + kind[-9:]: spec for kind, spec in pod_specs(name).items()}
    images = {c["name"]: c["image"] for spec in specs.values() for c in spec["containers"]}
    assert images["trainer"] == trainer
    assert images["evaluator"] == evaluator


def test_the_test_pod_needs_no_accelerator_and_no_spot_node():
    for name in ("gpu", "tpu-one-host", "spot", "everything"):
        pod = pod_specs(name)["Pod"]
        assert "tolerations" not in pod
        assert pod.get("nodeSelector", {}).keys() <= {"pool"}
        for container in pod["containers"]:
            assert container["resources"]["limits"].keys() == {"memory"}


def test_every_pod_that_mounts_a_bucket_asks_for_its_driver():
    made = objects("pvc")
    annotated = [
        made["Job", "trainer"]["spec"]["template"]["metadata"]["annotations"],
        made["Deployment", "evaluator"]["spec"]["template"]["metadata"]["annotations"],
        made["Pod", ""]["metadata"]["annotations"],
    ]
    assert [a.get("gke-gcsfuse/volumes") for a in annotated] == ["true"] * 3
    assert annotated[2]["helm.sh/hook"] == "test"
    assert "gke-gcsfuse/volumes" not in objects("cpu")["Pod", ""]["metadata"]["annotations"]


def test_the_test_pod_has_the_annotations_of_the_trainers_pods():
    annotations = objects("everything")["Pod", ""]["metadata"]["annotations"]
    assert annotations["cluster-autoscaler.kubernetes.io/safe-to-evict"] == "false"


def test_a_components_own_variable_replaces_everyones():
    values = {"extraEnv": [{"name": "A", "value": "all"}, {"name": "B", "value": "all"}]}
    for component in ("trainer", "tensorboard"):
        values[component] = {"extraEnv": [{"name": "A", "value": component}]}
    flags = [f"--set-json={name}={json.dumps(value)}" for name, value in values.items()]
    text = template(CHART, *flags_of(SETS["cpu"]), *flags)
    seen = {}
    for document in manifests(text):
        if document["kind"] in ("Job", "Deployment"):
            (container,) = document["spec"]["template"]["spec"]["containers"]
            names = [variable["name"] for variable in container["env"]]
            assert len(names) == len(set(names))
            own = {v["name"]: v.get("value") for v in container["env"]}
            seen[container["name"]] = (own["A"], own["B"])
    assert seen == {
        "trainer": ("trainer", "all"),
        "evaluator": ("all", "all"),
        "tensorboard": ("tensorboard", "all"),
    }


def test_the_test_pod_may_read_metrics_that_are_for_others():
    policy = objects("everything")["NetworkPolicy", ""]["spec"]
    (metrics,) = [r for r in policy["ingress"] if r.get("ports") == [{"port": 8000}]]
    assert len(metrics["from"]) == 2
    own = metrics["from"][1]["podSelector"]["matchLabels"]
    assert own.items() <= objects("everything")["Pod", ""]["metadata"]["labels"].items()


def test_apis_of_kind_and_minikube_are_in_reach():
    egress = objects("cpu")["NetworkPolicy", ""]["spec"]["egress"]
    ports = {port["port"] for rule in egress if "to" not in rule for port in rule["ports"]}
    assert {443, 6443, 8443} <= ports
