"""What the chart's Role lets the services do, and what not, with the services' own client."""

import pytest
from kubernetes import client, config

from tandem.errors import ClusterRefusedError
from tandem.kube.api import ApiNamespace
from tandem.kube.jobs import JobPhase
from tandem.kube.objects import EventText, Kind, Subject
from tests.cluster.experiments import RELEASE

pytestmark = pytest.mark.cluster


@pytest.fixture
def release(experiment):
    """Installed, with pods that wait for an image that is nowhere."""
    experiment.deploy("--set", "image.tag=nowhere", num_steps=10, every_n=10)
    return experiment


@pytest.fixture
def api_client(release):
    """Of the chart's service account, by a token as its pods get."""
    administrator, configuration = client.Configuration(), client.Configuration()
    config.load_kube_config(client_configuration=administrator)
    configuration.host = administrator.host
    configuration.ssl_ca_cert = administrator.ssl_ca_cert
    token = release.namespace.kubectl("create", "token", RELEASE).strip()
    configuration.api_key = {"BearerToken": f"Bearer {token}"}
    with client.ApiClient(configuration) as made:
        yield made


def test_every_call_that_the_services_make_succeeds(release, api_client):
    namespace = ApiNamespace(
        api_client, release.namespace.name, component="tandem-trainer", instance="a-pod"
    )
    job = Subject(Kind.JOB, release.job()["metadata"]["name"])
    evaluator = Subject(Kind.DEPLOYMENT, f"{RELEASE}-evaluator")
    for subject, found in ((job, release.job()), (evaluator, release.evaluator())):
        assert namespace.uid(subject) == found["metadata"]["uid"]
        namespace.annotate(subject, {"tandem.dev/phase": "training"})
        name = namespace.create_event(
            subject, namespace.uid(subject), EventText("Started", "attempt 1", is_warning=False)
        )
        namespace.repeat_event(name, count=2)
        [event] = [
            e for e in release.namespace.get("events")["items"] if e["metadata"]["name"] == name
        ]
        assert (event["reason"], event["count"], event["type"]) == ("Started", 2, "Normal")
        assert name in release.namespace.kubectl(
            "get", "events", "-o", "name", f"--field-selector=involvedObject.name={subject.name}"
        )
    assert release.job()["metadata"]["annotations"]["tandem.dev/phase"] == "training"
    assert namespace.job_state(job.name).phase is JobPhase.WAITING
    namespace.scale(evaluator.name, 0)
    assert release.evaluator()["spec"]["replicas"] == 0


def test_ten_calls_that_they_must_not_make_are_refused(release, api_client):
    name, other = release.namespace.name, "kube-system"
    core, batch, apps = (
        client.CoreV1Api(api_client),
        client.BatchV1Api(api_client),
        client.AppsV1Api(api_client),
    )
    job = release.job()["metadata"]["name"]
    more = {"metadata": {"annotations": {"a": "b"}}}
    calls = {
        "read secrets": lambda: core.list_namespaced_secret(name),
        "read the ConfigMap": lambda: core.read_namespaced_config_map(
            f"{RELEASE}-experiment", name
        ),
        "list pods": lambda: core.list_namespaced_pod(name),
        "delete pods": lambda: core.delete_collection_namespaced_pod(name),
        "list Jobs": lambda: batch.list_namespaced_job(name),
        "delete the Job": lambda: batch.delete_namespaced_job(job, name),
        "patch another Job": lambda: batch.patch_namespaced_job("another", name, more),
        "patch another Deployment": lambda: apps.patch_namespaced_deployment(
            f"{RELEASE}-tensorboard", name, more
        ),
        "scale another Deployment": lambda: apps.patch_namespaced_deployment_scale(
            f"{RELEASE}-tensorboard", name, {"spec": {"replicas": 0}}
        ),
        "read Events": lambda: core.list_namespaced_event(name),
        "write Events elsewhere": lambda: core.create_namespaced_event(
            other,
            client.CoreV1Event(
                metadata=client.V1ObjectMeta(generate_name="x."),
                involved_object=client.V1ObjectReference(namespace=other),
            ),
        ),
        "list nodes": core.list_node,
    }
    allowed = []
    for what, call in calls.items():
        try:
            call()
        except client.ApiException as error:
            if error.status == 403:
                continue
            raise
        allowed.append(what)
    assert allowed == []
    assert len(calls) >= 10


def test_a_missing_right_is_told_in_the_api_servers_words(release, api_client):
    namespace = ApiNamespace(
        api_client, release.namespace.name, component="tandem-trainer", instance="a-pod"
    )
    with pytest.raises(ClusterRefusedError, match=r"reading Job another: .*cannot get resource"):
        namespace.job_state("another")
