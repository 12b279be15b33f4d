"""A namespace's experiments as someone outside of them sees them: Jobs, Deployments, pods, Events.

Reads only, by whatever credentials the person has: a kubeconfig, or a pod's service account.
"""

from __future__ import annotations

import contextlib
import datetime
import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from kubernetes import client, config

from tandem.errors import ClusterRefusedError
from tandem.kube.api import translated
from tandem.kube.jobs import Condition, JobState, job_state

_SELECTOR = "app.kubernetes.io/name=tandem"
_RELEASE = "app.kubernetes.io/instance"
_COMPONENT = "app.kubernetes.io/component"
_QUEUE = "kueue.x-k8s.io/queue-name"
_RUN_FLAG = "--run="
_EVENTS_OF_A_PAGE = 500
_MAX_PAGES = 10  # they come by name, not by age
_MAX_ERROR_CHARACTERS = 300
_OK = 200

_Json: TypeAlias = dict[str, Any]


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
    """An Event, what it is about as `Job/NAME`, and who said it."""

    reason: str
    message: str
    subject: str
    source: str
    is_warning: bool
    age_seconds: float
    times: int


class Onlooker:
    """Looks at namespaces.

    Asks for plain JSON: the client's models of pods and Jobs take longer to import than a look may
    last.

    Args:
        api_client: of the official client.
        seconds: that an answer may take.
    """

    def __init__(self, api_client: client.ApiClient, *, seconds: float) -> None:
        self._api_client = api_client
        self._timeout = (seconds, seconds)

    def jobs(self, namespace: str) -> list[SeenJob]:
        """The trainers' Jobs, the newest first."""
        items = self._list(f"/apis/batch/v1/namespaces/{namespace}/jobs", labelSelector=_SELECTOR)
        return sorted(map(_job, items), key=lambda job: job.age_seconds)

    def deployments(self, namespace: str) -> list[SeenDeployment]:
        """The evaluators' Deployments."""
        items = self._list(
            f"/apis/apps/v1/namespaces/{namespace}/deployments",
            labelSelector=f"{_SELECTOR},{_COMPONENT}=evaluator",
        )
        return [
            SeenDeployment(
                item["metadata"]["name"],
                _label(item, _RELEASE),
                _run_of(item["spec"]["template"]),
                item["spec"].get("replicas", 0),
                _age(item["metadata"].get("creationTimestamp")),
            )
            for item in items
        ]

    def pods(self, namespace: str) -> list[SeenPod]:
        """The experiments' pods, the newest first."""
        items = self._list(f"/api/v1/namespaces/{namespace}/pods", labelSelector=_SELECTOR)
        return sorted(map(_pod, items), key=lambda pod: pod.age_seconds)

    def events(self, namespace: str) -> list[SeenEvent]:
        """The namespace's Events, the newest first."""
        path = f"/api/v1/namespaces/{namespace}/events"
        query = {"limit": str(_EVENTS_OF_A_PAGE)}
        items = []
        for _ in range(_MAX_PAGES):
            page, query["continue"] = self._page(path, query)
            items += page
            if not query["continue"]:
                break
        return sorted(map(_event, items), key=lambda event: event.age_seconds)

    def namespaces(self) -> list[str]:
        """Those that have experiments, wherever this person may look."""
        items = self._list("/apis/batch/v1/jobs", labelSelector=_SELECTOR)
        return sorted({str(item["metadata"]["namespace"]) for item in items})

    def _list(self, path: str, **query: str) -> list[_Json]:
        items, _ = self._page(path, query)
        return items

    def _page(self, path: str, query: Mapping[str, str]) -> tuple[list[_Json], str]:
        """What is there, and what to ask for the next page with; nothing where this is the last."""
        with translated(f"reading {path}"):
            request = self._api_client.param_serialize(
                "GET",
                path,
                query_params=list(query.items()),
                header_params={"Accept": "application/json"},
                auth_settings=["BearerToken"],
            )
            answer = self._api_client.call_api(*request, _request_timeout=self._timeout)
            data: Any = answer.read()  # type: ignore[no-untyped-call]
            if answer.status != _OK:
                raise client.ApiException(status=answer.status, reason=answer.reason, body=data)
            answered = json.loads(data)
            return list(answered["items"]), answered.get("metadata", {}).get("continue", "")


@contextlib.contextmanager
def looking(*, seconds: float) -> Iterator[Onlooker]:
    """Looks by this person's kubeconfig, or by this pod's service account.

    Raises:
        ClusterRefusedError: there is neither, or the kubeconfig is none.
    """
    configuration = client.Configuration()
    try:
        config.load_kube_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
    except (config.ConfigException, FileNotFoundError):
        try:
            config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
        except config.ConfigException as error:
            raise ClusterRefusedError(
                "no kubeconfig (KUBECONFIG, or ~/.kube/config), and this is no pod with a service "
                "account; expected one of the two, or a run folder instead of -n and --all"
            ) from error
    except Exception as error:  # whatever the client's parsers raise
        text = " ".join(f"{error}".split())[:_MAX_ERROR_CHARACTERS]
        raise ClusterRefusedError(
            f"the kubeconfig can't be read ({text}); expected what kubectl writes, at KUBECONFIG "
            "or ~/.kube/config"
        ) from error
    configuration.retries = False
    with client.ApiClient(configuration) as api_client:
        yield Onlooker(api_client, seconds=seconds)


def _job(item: _Json) -> SeenJob:
    status, spec = item.get("status", {}), item["spec"]
    conditions = [
        Condition(c["type"], c["status"] == "True", c.get("reason", ""), c.get("message", ""))
        for c in status.get("conditions", ())
    ]
    is_suspended = bool(spec.get("suspend"))
    state = job_state(
        conditions,
        num_ready=status.get("ready", 0),
        num_failed=status.get("failed", 0),
        is_suspended=is_suspended,
    )
    return SeenJob(
        name=item["metadata"]["name"],
        release=_label(item, _RELEASE),
        run=_run_of(spec["template"]),
        state=state,
        num_active=status.get("active", 0),
        is_suspended=is_suspended,
        queue=_label(item, _QUEUE),
        age_seconds=_age(item["metadata"].get("creationTimestamp")),
    )


def _run_of(template: _Json) -> str:
    """The run folder, from the flags that the chart gives every process."""
    for container in template["spec"]["containers"]:
        for argument in container.get("args", ()):
            if argument.startswith(_RUN_FLAG):
                return str(argument.removeprefix(_RUN_FLAG))
    return ""


def _pod(item: _Json) -> SeenPod:
    component = _label(item, _COMPONENT)
    status = item.get("status", {})
    container: _Json = next(
        (one for one in status.get("containerStatuses", ()) if one["name"] == component), {}
    )
    waiting, message = _waiting(status, container)
    last = _last_end(container)
    return SeenPod(
        name=item["metadata"]["name"],
        release=_label(item, _RELEASE),
        component=component,
        phase=status.get("phase", ""),
        is_ready=bool(container.get("ready")),
        waiting=waiting,
        message=message,
        restarts=container.get("restartCount", 0),
        last_exit=last.get("reason", ""),
        exit_code=last.get("exitCode"),
        exit_message=last.get("message", ""),
        age_seconds=_age(item["metadata"].get("creationTimestamp")),
        disruption=_disruption(status),
    )


def _waiting(status: _Json, container: _Json) -> tuple[str, str]:
    """Why it doesn't run, and the cluster's words for that."""
    state = container.get("state", {}).get("waiting")
    if state is not None:
        return state.get("reason", ""), state.get("message", "")
    for condition in status.get("conditions", ()):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return condition.get("reason", ""), condition.get("message", "")
    return "", ""


def _last_end(container: _Json) -> _Json:
    now, before = container.get("state", {}), container.get("lastState", {})
    return now.get("terminated") or before.get("terminated") or {}


def _disruption(status: _Json) -> str:
    for condition in status.get("conditions", ()):
        if condition["type"] == "DisruptionTarget" and condition["status"] == "True":
            return str(condition.get("reason") or "DisruptionTarget")
    return ""


def _event(item: _Json) -> SeenEvent:
    about, series = item["involvedObject"], item.get("series") or {}
    source = item.get("reportingComponent") or (item.get("source") or {}).get("component", "")
    times = (series.get("lastObservedTime"), item.get("lastTimestamp"), item.get("eventTime"))
    when = next(filter(None, times), item["metadata"].get("creationTimestamp"))
    return SeenEvent(
        reason=item.get("reason", ""),
        message=item.get("message", ""),
        subject=f"{about.get('kind', '')}/{about.get('name', '')}",
        source=source,
        is_warning=item.get("type") == "Warning",
        age_seconds=_age(when),
        times=item.get("count") or 1,
    )


def _label(item: _Json, name: str) -> str:
    return str(item["metadata"].get("labels", {}).get(name, ""))


def _age(timestamp: str | None) -> float:
    """Seconds since an RFC 3339 time, with or without parts of a second."""
    if not timestamp:
        return 0.0
    moment = datetime.datetime.fromisoformat(timestamp.replace("Z", "+00:00"))
    return max(0.0, (datetime.datetime.now(datetime.timezone.utc) - moment).total_seconds())
