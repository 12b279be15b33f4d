"""What the chart's README promises of single objects, beside the renders that were reviewed."""

import pytest

from tests.deploy.rendering import NEEDS_TOOLS, SETS, manifests, objects, pod_specs, rendered

pytestmark = NEEDS_TOOLS


def _trainer_pod(name):
    return next(spec for owner, spec in pod_specs(name).items() if "trainer" in owner)


@pytest.mark.parametrize("name", SETS)
def test_two_evaluators_of_a_release_never_overlap(name):
    made = objects(name).get(("Deployment", "evaluator"))
    assert made is None or made["spec"]["strategy"] == {"type": "Recreate"}


def test_tensorboard_reads_buckets_by_the_slower_loader_that_can():
    (container,) = pod_specs("everything")[
        next(owner for owner in pod_specs("everything") if "tensorboard" in owner)
    ]["containers"]
    assert "--load_fast=false" in container["args"]


def test_a_spot_trainer_goes_to_spot_nodes_and_stands_their_taint():
    spec = _trainer_pod("spot")
    assert spec["nodeSelector"]["cloud.google.com/gke-spot"] == "true"
    assert {
        "key": "cloud.google.com/gke-spot",
        "operator": "Equal",
        "value": "true",
        "effect": "NoSchedule",
    } in spec["tolerations"]


def test_a_gpu_trainer_asks_for_its_cards_and_the_nodes_that_have_them():
    spec = _trainer_pod("gpu")
    assert spec["nodeSelector"]["cloud.google.com/gke-accelerator"]
    assert int(spec["containers"][0]["resources"]["limits"]["nvidia.com/gpu"]) >= 1


def test_a_network_policy_lets_in_metrics_and_out_what_the_processes_need():
    policy = objects("everything")["NetworkPolicy", ""]["spec"]
    assert set(policy["policyTypes"]) == {"Ingress", "Egress"}
    ports = {port["port"] for rule in policy["egress"] for port in rule.get("ports", ())}
    assert {53, 443, 6443} <= ports
    metadata = [
        {to["ipBlock"]["cidr"] for to in rule["to"]}
        for rule in policy["egress"]
        if any("ipBlock" in to for to in rule.get("to", ()))
    ]
    assert {"169.254.169.254/32", "169.254.169.252/32"} in metadata
    for rule in (*policy["ingress"], *policy["egress"]):
        assert rule.get("ports") or rule.get("to") or rule.get("from"), "a rule for everything"
    served = {
        port["containerPort"]
        for spec in pod_specs("everything").values()
        for container in spec["containers"]
        for port in container.get("ports", ())
        if port["name"] in ("metrics", "http")
    }
    let_in = {port["port"] for rule in policy["ingress"] for port in rule.get("ports", ())}
    assert served
    assert served <= let_in


def test_the_role_reaches_the_releases_own_objects_alone():
    for document in manifests(rendered("everything")):
        if document["kind"] != "Role":
            continue
        for rule in document["rules"]:
            assert "*" not in (*rule["verbs"], *rule["resources"], *rule["apiGroups"])
            if set(rule["resources"]) != {"events"}:
                assert rule["resourceNames"], rule
                assert "delete" not in rule["verbs"]
                assert "create" not in rule["verbs"]
