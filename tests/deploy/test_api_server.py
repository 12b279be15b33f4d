"""A real API server takes every render, and a release lives through upgrades."""

import json
import subprocess

import pytest

from tests.deploy.rendering import (
    CHART,
    HELMS,
    MONITORING,
    RELEASE,
    SETS,
    flags_of,
    manifests,
    run_helm,
)
from tests.rig.cluster import try_kubectl

pytestmark = pytest.mark.cluster


def _dry_run(text, *flags):
    done = subprocess.run(
        ["kubectl", "create", "--dry-run=server", "--filename=-", *flags],
        input=text,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", SETS)
def test_the_server_takes_every_object(name, namespace):
    done = run_helm(
        "template", RELEASE, str(CHART), "--namespace", namespace.name, *flags_of(SETS[name])
    )
    documents = manifests(done.stdout)
    for document in documents:  # without it, the test pod would be refused
        if document["kind"] == "ServiceAccount":
            namespace.apply(document)
    rest = [d for d in documents if d["kind"] != "ServiceAccount"]
    taken = _dry_run(json.dumps({"apiVersion": "v1", "kind": "List", "items": rest}))
    assert taken.count("created (server dry run)") == len(rest)


@pytest.mark.parametrize("kind", ["prometheusRule", "gmpClusterRules"])
def test_the_server_takes_the_monitoring_chart(kind, namespace):
    flags = ("--namespace", namespace.name, "--set", f"rules.{kind}.enabled=true")
    done = run_helm("template", "watch", str(MONITORING), *flags)
    # Two dashboards and the rules.
    assert _dry_run(done.stdout).count("created (server dry run)") == 3


class Release:
    """A release whose pods never start: their image is nowhere."""

    def __init__(self, namespace, helm):
        self.namespace = namespace
        self._helm = helm

    def helm(self, command, *flags):
        values = [] if command == "uninstall" else [str(CHART), *flags_of(SETS["cpu"]), *flags]
        done = run_helm(
            command, RELEASE, *values, "--namespace", self.namespace.name, helm=self._helm
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def jobs(self):
        """Uid by name, of those that are not on their way out."""
        return {
            job["metadata"]["name"]: job["metadata"]["uid"]
            for job in self.namespace.get("jobs")["items"]
            if "deletionTimestamp" not in job["metadata"]
        }

    def evaluator(self):
        return self.namespace.get("deployment", f"{RELEASE}-evaluator")

    def as_itself(self, *arguments, stdin=None):
        """kubectl with the rights that the chart gives to trainer and evaluator."""
        account = f"system:serviceaccount:{self.namespace.name}:{RELEASE}"
        flags = ("--namespace", self.namespace.name, f"--as={account}")
        return try_kubectl(*flags, *arguments, stdin=stdin)


@pytest.fixture(params=HELMS)
def release(request, namespace):
    made = Release(namespace, request.param)
    made.helm("install")
    return made


def test_an_upgrade_makes_a_new_job_only_when_the_trainer_changes(release):
    first = release.jobs()
    assert len(first) == 1
    release.helm("upgrade", "--set", "commonLabels.team=vision,trainer.backoffLimit=3")
    assert release.jobs() == first
    labels = release.namespace.get("jobs")["items"][0]["metadata"]["labels"]
    assert labels["team"] == "vision"
    release.helm("upgrade", "--set", "experiment.overrides[0]=train_config { num_steps: 7 }")
    second = release.jobs()
    assert len(second) == 1
    assert second.keys().isdisjoint(first)


def test_an_upgrade_starts_an_evaluator_again_that_has_scaled_itself_to_nothing(release):
    release.namespace.kubectl(
        *("patch", f"deployment/{RELEASE}-evaluator", "--subresource=scale", "--type=merge"),
        *('--patch={"spec": {"replicas": 0}}', "--field-manager=tandem"),
    )
    assert release.evaluator()["spec"]["replicas"] == 0
    release.helm("upgrade", "--set", "experiment.overrides[0]=train_config { num_steps: 7 }")
    assert release.evaluator()["spec"]["replicas"] == 1


def test_an_upgrade_makes_a_deleted_job_again(release):
    (name,) = release.jobs()
    release.namespace.kubectl("delete", "job", name)
    release.helm("upgrade")
    assert list(release.jobs()) == [name]


def test_nothing_is_left_of_a_release(release):
    release.helm("uninstall")
    kinds = "jobs,deployments,services,configmaps,secrets,serviceaccounts,roles,rolebindings"
    kinds += ",networkpolicies,persistentvolumeclaims,poddisruptionbudgets"
    left = [
        f"{item['kind']} {item['metadata']['name']}"
        for item in release.namespace.get(kinds)["items"]
        if "deletionTimestamp" not in item["metadata"]
        and item["metadata"]["name"] not in ("default", "kube-root-ca.crt")
    ]
    assert left == []


def test_a_release_may_do_what_it_must_and_nothing_else(release):
    (job,) = release.jobs()
    deployment = f"deployment/{RELEASE}-evaluator"
    note = '--patch={"metadata": {"annotations": {"tandem.dev/phase": "training"}}}'
    for allowed in (
        ("get", f"job/{job}"),
        ("patch", f"job/{job}", "--type=merge", note),
        ("get", deployment),
        ("patch", deployment, "--type=merge", note),
    ):
        done = release.as_itself(*allowed)
        assert done.returncode == 0, (allowed, done.stderr)
    assert _may(release, "create", "events")
    assert _may(release, "patch", "events")
    assert _may(release, "patch", f"deployments.apps/{RELEASE}-evaluator", "--subresource=scale")
    for verb, what in (
        ("list", "pods"),
        ("get", "secrets"),
        ("list", "configmaps"),
        ("create", "pods"),
        ("create", "jobs.batch"),
        ("delete", f"jobs.batch/{job}"),
        ("get", "jobs.batch/another"),
        ("patch", "jobs.batch/another"),
        ("update", f"deployments.apps/{RELEASE}-evaluator"),
        ("patch", f"deployments.apps/{RELEASE}-tensorboard"),
        ("delete", f"deployments.apps/{RELEASE}-evaluator"),
        ("list", "events"),
        ("delete", "events"),
        ("get", "nodes"),
        ("list", "namespaces"),
    ):
        assert not _may(release, verb, what), (verb, what)
    assert not _may(release, "patch", "deployments.apps/other", "--subresource=scale")


def _may(release, verb, what, *flags):
    account = f"system:serviceaccount:{release.namespace.name}:{RELEASE}"
    said = try_kubectl(
        "auth",
        "can-i",
        verb,
        what,
        *flags,
        f"--as={account}",
        f"--namespace={release.namespace.name}",
    )
    return said.stdout.strip() == "yes"
