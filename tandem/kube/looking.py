"""A namespace's experiments as someone outside of them sees them: Jobs, Deployments, pods, Events.

Reads only, by whatever credentials the person has: a kubeconfig, or a pod's service account.
"""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from kubernetes import client, config

from tandem.errors import ClusterRefusedError
from tandem.kube.api import translated
from tandem.kube.jobs import Condition, JobState, job_state

_SELECTOR = "app.kubernetes.io/name=tandem"
_RELEASE = "app.kubernetes.io/instance"
_COMPONENT = "app.kubernetes.io/component"
_QUEUE = "kueue.x-k8s.io/queue-name"
_RUN_FLAG = "--run="
_MAX_EVENTS = 500


class SeenJob(NamedTuple):
    """A trainer's Job: its release, run folder and state."""

    name: str
    release: str
    run: str
    state: JobState
    num_active: int
    is_suspended: bool
    queue: str
    age_seconds: float


class SeenDeployment(NamedTuple):
    """An evaluator's Deployment."""

    name: str
    release: str
    run: str
    replicas: int
    age_seconds: float


class SeenPod(NamedTuple):
    """A pod; see `tandem.status.facts.PodFacts`, which this becomes."""

    name: str
    release: str
    component: str
    phase: str
    is_ready: bool
    waiting: str
    message: str
    restarts: int
    last_exit: str
    exit_code: int | None
    exit_message: str
    age_seconds: float
    disruption: str


class SeenEvent(NamedTuple):
    """An Event, and what it is about as `Job/NAME`."""

    reason: str
    message: str
    subject: str
    is_warning: bool
    age_seconds: float
    times: int


class Onlooker:
    """Looks at namespaces.

    Args:
        api_client: of the official client.
        seconds: that an answer may take.
    """

    def __init__(self, api_client: client.ApiClient, *, seconds: float) -> None:
        self._core = client.CoreV1Api(api_client)
        self._batch = client.BatchV1Api(api_client)
        self._apps = client.AppsV1Api(api_client)
        self._timeout = (seconds, seconds)

    def jobs(self, namespace: str) -> list[SeenJob]:
        """The trainers' Jobs, the newest first."""
        with translated(f"reading the Jobs of {namespace}"):
            found: Any = self._batch.list_namespaced_job(
                namespace, label_selector=_SELECTOR, _request_timeout=self._timeout
            )
        return sorted(map(_job, found.items), key=lambda job: job.age_seconds)

    def deployments(self, namespace: str) -> list[SeenDeployment]:
        """The evaluators' Deployments."""
        with translated(f"reading the Deployments of {namespace}"):
            found: Any = self._apps.list_namespaced_deployment(
                namespace,
                label_selector=f"{_SELECTOR},{_COMPONENT}=evaluator",
                _request_timeout=self._timeout,
            )
        return [
            SeenDeployment(
                item.metadata.name,
                _label(item, _RELEASE),
                _run_of(item.spec.template),
                item.spec.replicas or 0,
                _age(item.metadata.creation_timestamp),
            )
            for item in found.items
        ]

    def pods(self, namespace: str) -> list[SeenPod]:
        """The experiments' pods, the newest first."""
        with translated(f"reading the pods of {namespace}"):
            found: Any = self._core.list_namespaced_pod(
                namespace, label_selector=_SELECTOR, _request_timeout=self._timeout
            )
        return sorted(map(_pod, found.items), key=lambda pod: pod.age_seconds)

    def events(self, namespace: str) -> list[SeenEvent]:
        """The namespace's Events, the newest first."""
        with translated(f"reading the Events of {namespace}"):
            found: Any = self._core.list_namespaced_event(
                namespace, limit=_MAX_EVENTS, _request_timeout=self._timeout
            )
        return sorted(map(_event, found.items), key=lambda event: event.age_seconds)

    def namespaces(self) -> list[str]:
        """Those that have experiments, wherever this person may look."""
        with translated("reading the Jobs of all namespaces"):
            found: Any = self._batch.list_job_for_all_namespaces(
                label_selector=_SELECTOR, _request_timeout=self._timeout
            )
        return sorted({str(item.metadata.namespace) for item in found.items})


@contextlib.contextmanager
def looking(*, seconds: float) -> Iterator[Onlooker]:
    """Looks by this person's kubeconfig, or by this pod's service account.

    Raises:
        ClusterRefusedError: there is neither.
    """
    configuration = client.Configuration()
    try:
        config.load_kube_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
    except (config.ConfigException, FileNotFoundError):
        try:
            config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
        except config.ConfigException as error:
            raise ClusterRefusedError(
                f"no kubeconfig, and no service account of a pod, to look at the cluster with: "
                f"{error}"
            ) from error
    configuration.retries = False
    with client.ApiClient(configuration) as api_client:
        yield Onlooker(api_client, seconds=seconds)


def _job(item: Any) -> SeenJob:  # noqa: ANN401  # the client's models
    conditions = [
        Condition(c.type, c.status == "True", c.reason or "", c.message or "")
        for c in item.status.conditions or ()
    ]
    is_suspended = bool(item.spec.suspend)
    state = job_state(
        conditions,
        num_ready=item.status.ready or 0,
        num_failed=item.status.failed or 0,
        is_suspended=is_suspended,
    )
    return SeenJob(
        name=item.metadata.name,
        release=_label(item, _RELEASE),
        run=_run_of(item.spec.template),
        state=state,
        num_active=item.status.active or 0,
        is_suspended=is_suspended,
        queue=_label(item, _QUEUE),
        age_seconds=_age(item.metadata.creation_timestamp),
    )


def _run_of(template: Any) -> str:  # noqa: ANN401
    """The run folder, from the flags that the chart gives every process."""
    for container in template.spec.containers:
        for argument in container.args or ():
            if argument.startswith(_RUN_FLAG):
                return str(argument.removeprefix(_RUN_FLAG))
    return ""


def _pod(item: Any) -> SeenPod:  # noqa: ANN401
    component = _label(item, _COMPONENT)
    status = _own_container(item.status.container_statuses or (), component)
    waiting, message = _waiting(item, status)
    last = _last_end(status)
    return SeenPod(
        name=item.metadata.name,
        release=_label(item, _RELEASE),
        component=component,
        phase=item.status.phase or "",
        is_ready=bool(status and status.ready),
        waiting=waiting,
        message=message,
        restarts=status.restart_count if status else 0,
        last_exit=(last.reason or "") if last else "",
        exit_code=last.exit_code if last else None,
        exit_message=(last.message or "") if last else "",
        age_seconds=_age(item.metadata.creation_timestamp),
        disruption=_disruption(item),
    )


def _own_container(statuses: Sequence[Any], component: str) -> Any:  # noqa: ANN401
    return next((status for status in statuses if status.name == component), None)


def _waiting(item: Any, status: Any) -> tuple[str, str]:  # noqa: ANN401
    """Why it doesn't run, and the cluster's words for that."""
    if status is not None and status.state.waiting is not None:
        return status.state.waiting.reason or "", status.state.waiting.message or ""
    for condition in item.status.conditions or ():
        if condition.type == "PodScheduled" and condition.status == "False":
            return condition.reason or "", condition.message or ""
    return "", ""


def _last_end(status: Any) -> Any:  # noqa: ANN401
    if status is None:
        return None
    return status.state.terminated or (status.last_state and status.last_state.terminated)


def _disruption(item: Any) -> str:  # noqa: ANN401
    for condition in item.status.conditions or ():
        if condition.type == "DisruptionTarget" and condition.status == "True":
            return condition.reason or "DisruptionTarget"
    return ""


def _event(item: Any) -> SeenEvent:  # noqa: ANN401
    about = item.involved_object
    series = item.series.last_observed_time if item.series else None
    when = series or item.last_timestamp or item.event_time or item.metadata.creation_timestamp
    return SeenEvent(
        reason=item.reason or "",
        message=item.message or "",
        subject=f"{about.kind}/{about.name}",
        is_warning=item.type == "Warning",
        age_seconds=_age(when),
        times=item.count or 1,
    )


def _label(item: Any, name: str) -> str:  # noqa: ANN401
    labels: Mapping[str, str] = item.metadata.labels or {}
    return labels.get(name, "")


def _age(moment: datetime.datetime | None) -> float:
    if moment is None:
        return 0.0
    return max(0.0, (datetime.datetime.now(datetime.timezone.utc) - moment).total_seconds())
