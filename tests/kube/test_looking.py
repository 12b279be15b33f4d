"""What is seen of a namespace through the API server."""

import pytest

from tandem.errors import ClusterRefusedError, ClusterUnavailableError
from tandem.kube.jobs import JobPhase
from tandem.kube.looking import looking
from tests.kube.api_server import ApiServer, kubeconfig, metadata, serving, template

JOBS = "/apis/batch/v1/namespaces/ml/jobs"
PODS = "/api/v1/namespaces/ml/pods"
EVENTS = "/api/v1/namespaces/ml/events"


@pytest.fixture
def server(tmp_path, monkeypatch):
    made = ApiServer()
    with serving(made) as url:
        (tmp_path / "kubeconfig").write_text(kubeconfig(url))
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
        monkeypatch.setattr(
            "kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION",
            str(tmp_path / "kubeconfig"),
        )
        yield made


def test_a_job_says_its_run_its_state_and_its_queue(server):
    server.lists[JOBS] = [
        {
            "metadata": metadata(
                "fox-trainer-1", "trainer", **{"kueue.x-k8s.io/queue-name": "gpus"}
            ),
            "spec": {"suspend": True, "template": template("gs://b/fox")},
            "status": {
                "failed": 2,
                "conditions": [{"type": "Suspended", "status": "True", "reason": "JobSuspended"}],
            },
        }
    ]
    with looking(seconds=5) as onlooker:
        [job] = onlooker.jobs("ml")

    assert (job.name, job.release, job.run, job.queue) == (
        "fox-trainer-1", "fox", "gs://b/fox", "gpus",
    )  # fmt: skip
    assert (job.state.phase, job.state.reason) == (JobPhase.WAITING, "JobSuspended")
    assert (job.state.num_failed, job.is_suspended) == (2, True)
    assert job.age_seconds > 0
    assert server.queries == [(JOBS, {"labelSelector": ["app.kubernetes.io/name=tandem"]})]


def _pod(name="fox-trainer-1-a", *, container=None, **status):
    own = [{"name": "other", "ready": True}]
    own += [{"name": "trainer", **container}] if container is not None else []
    return {
        "metadata": metadata(name, "trainer"),
        "spec": {},
        "status": {"phase": "Running", "containerStatuses": own, **status},
    }


def test_a_pod_says_why_it_waits_and_how_it_last_ended(server):
    killed = {"terminated": {"reason": "OOMKilled", "exitCode": 137}}
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s"}}
    server.lists[PODS] = [
        _pod(container={"restartCount": 3, "state": waiting, "lastState": killed}),
    ]
    with looking(seconds=5) as onlooker:
        [pod] = onlooker.pods("ml")

    assert (pod.waiting, pod.message) == ("CrashLoopBackOff", "back-off 40s")
    assert (pod.last_exit, pod.exit_code, pod.restarts) == ("OOMKilled", 137, 3)
    assert not pod.is_ready


def test_a_pod_that_no_node_takes_says_the_schedulers_words(server):
    condition = {
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "message": "0/3 nodes are available",
    }  # fmt: skip
    disrupted = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
    server.lists[PODS] = [
        _pod(phase="Pending", conditions=[condition]),
        _pod("fox-trainer-1-b", container={"ready": True}, conditions=[disrupted]),
    ]
    with looking(seconds=5) as onlooker:
        first, second = onlooker.pods("ml")

    assert (first.phase, first.waiting, first.message) == (
        "Pending", "Unschedulable", "0/3 nodes are available",
    )  # fmt: skip
    assert (second.is_ready, second.disruption) == (True, "EvictionByEvictionAPI")


def test_events_of_both_kinds_are_read_the_newest_first(server):
    about = {"kind": "Job", "name": "fox-trainer-1"}
    server.lists[EVENTS] = [
        {
            "metadata": metadata("old"), "involvedObject": about, "reason": "Stopped",
            "message": "step 9", "type": "Normal", "count": 4,
            "lastTimestamp": "2026-01-31T12:30:00Z", "source": {"component": "tandem-trainer"},
        },
        {
            "metadata": metadata("new"), "involvedObject": about, "reason": "FailedCreate",
            "message": "exceeded quota", "type": "Warning",
            "eventTime": "2026-01-31T12:40:00.123456Z", "reportingComponent": "job-controller",
        },
    ]  # fmt: skip
    with looking(seconds=5) as onlooker:
        new, old = onlooker.events("ml")

    assert (new.reason, new.is_warning, new.source) == ("FailedCreate", True, "job-controller")
    assert (old.subject, old.source, old.times) == ("Job/fox-trainer-1", "tandem-trainer", 4)


def test_the_newest_event_is_found_behind_many_others(server):
    about = {"kind": "Job", "name": "fox-trainer-1"}
    common = {"metadata": metadata("x"), "involvedObject": about, "message": "", "type": "Normal"}
    server.lists[EVENTS] = [
        *[common | {"reason": "Old", "lastTimestamp": "2026-01-31T12:30:00Z"}] * 1200,
        common | {"reason": "FailedCreate", "lastTimestamp": "2026-01-31T12:40:00Z"},
    ]
    with looking(seconds=5) as onlooker:
        events = onlooker.events("ml")

    assert (len(events), events[0].reason) == (1201, "FailedCreate")
    assert len(server.queries) == 3


def test_a_kubeconfig_that_is_none_is_said_in_words(tmp_path, monkeypatch):
    (tmp_path / "kubeconfig").write_text("[1, 2]")
    monkeypatch.setattr(
        "kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "kubeconfig")
    )
    with pytest.raises(ClusterRefusedError, match="kubeconfig can't be read"), looking(seconds=5):
        pass


def test_what_the_server_refuses_is_raised_with_its_words(server):
    with looking(seconds=5) as onlooker, pytest.raises(ClusterRefusedError, match="is forbidden"):
        onlooker.pods("ml")


def test_a_server_that_is_gone_is_unavailable(tmp_path, monkeypatch):
    (tmp_path / "kubeconfig").write_text(kubeconfig("http://127.0.0.1:9"))
    monkeypatch.setattr(
        "kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "kubeconfig")
    )
    with looking(seconds=2) as onlooker, pytest.raises(ClusterUnavailableError):
        onlooker.jobs("ml")
