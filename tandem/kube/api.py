"""Our few calls of the Kubernetes API, by the official client; nobody else sees its exceptions.

Nothing is repeated here: who calls decides whether that is worth it. Importing the client takes
half a second, which only a process that is told of a cluster should pay.
"""

from __future__ import annotations

import contextlib
import datetime
import json
from collections.abc import Iterator, Mapping
from typing import Any

import urllib3
from kubernetes import client, config

from tandem.errors import (
    ClusterError,
    ClusterNotFoundError,
    ClusterRefusedError,
    ClusterUnavailableError,
)
from tandem.kube.jobs import Condition, JobState, job_state
from tandem.kube.objects import EventText, Kind, Subject

_TIMEOUT_SECONDS = (5.0, 10.0)  # to connect, and for the answer
_MERGE = "application/merge-patch+json"
_MAX_MESSAGE_CHARACTERS = 1000  # the API server takes 1024
_MAX_ERROR_CHARACTERS = 300
_PASSING_CODES = frozenset({408, 409, 429})


class ApiNamespace:
    """A namespace, through the API server.

    Args:
        api_client: of the official client; the caller closes it.
        namespace: its name.
        component: who speaks in Events, as `tandem-trainer`.
        instance: this pod.
    """

    def __init__(
        self, api_client: client.ApiClient, namespace: str, *, component: str, instance: str
    ) -> None:
        self._namespace = namespace
        self._component = component
        self._instance = instance
        self._core = client.CoreV1Api(api_client)
        self._batch = client.BatchV1Api(api_client)
        self._apps = client.AppsV1Api(api_client)

    def uid(self, subject: Subject) -> str:
        """See `tandem.kube.objects.Namespace`."""
        read = {
            Kind.JOB: self._batch.read_namespaced_job,
            Kind.DEPLOYMENT: self._apps.read_namespaced_deployment,
        }[subject.kind]
        with translated(f"reading {subject}"):
            found: Any = read(subject.name, self._namespace, _request_timeout=_TIMEOUT_SECONDS)
        return str(found.metadata.uid)

    def job_state(self, name: str) -> JobState:
        """See `tandem.kube.objects.Namespace`."""
        with translated(f"reading Job {name}"):
            found: Any = self._batch.read_namespaced_job(
                name, self._namespace, _request_timeout=_TIMEOUT_SECONDS
            )
        conditions = [
            Condition(c.type, c.status == "True", c.reason or "", c.message or "")
            for c in found.status.conditions or ()
        ]
        return job_state(
            conditions,
            num_ready=found.status.ready or 0,
            num_failed=found.status.failed or 0,
            is_suspended=bool(found.spec.suspend),
        )

    def annotate(self, subject: Subject, annotations: Mapping[str, str]) -> None:
        """See `tandem.kube.objects.Namespace`."""
        patch: Any = {
            Kind.JOB: self._batch.patch_namespaced_job,
            Kind.DEPLOYMENT: self._apps.patch_namespaced_deployment,
        }[subject.kind]
        with translated(f"annotating {subject}"):
            patch(
                subject.name,
                self._namespace,
                {"metadata": {"annotations": dict(annotations)}},
                _content_type=_MERGE,
                _request_timeout=_TIMEOUT_SECONDS,
            )

    def create_event(self, subject: Subject, uid: str, event: EventText) -> str:
        """See `tandem.kube.objects.Namespace`."""
        now = _now()
        body = client.CoreV1Event(
            metadata=client.V1ObjectMeta(
                generate_name=f"{subject.name}.", namespace=self._namespace
            ),
            involved_object=client.V1ObjectReference(
                api_version=subject.kind.api_version,
                kind=str(subject.kind),
                name=subject.name,
                namespace=self._namespace,
                uid=uid,
            ),
            reason=event.reason,
            message=event.message[:_MAX_MESSAGE_CHARACTERS],
            type="Warning" if event.is_warning else "Normal",
            first_timestamp=now,
            last_timestamp=now,
            count=1,
            source=client.V1EventSource(component=self._component),
            reporting_component=self._component,
            reporting_instance=self._instance,
        )
        with translated(f"writing an Event about {subject}"):
            created: Any = self._core.create_namespaced_event(
                self._namespace, body, _request_timeout=_TIMEOUT_SECONDS
            )
        return str(created.metadata.name)

    def repeat_event(self, name: str, *, count: int) -> None:
        """See `tandem.kube.objects.Namespace`."""
        with translated(f"repeating Event {name}"):
            self._core.patch_namespaced_event(
                name,
                self._namespace,
                {"count": count, "lastTimestamp": _now().isoformat()},
                _content_type=_MERGE,
                _request_timeout=_TIMEOUT_SECONDS,
            )

    def scale(self, deployment: str, replicas: int) -> None:
        """See `tandem.kube.objects.Namespace`."""
        with translated(f"scaling Deployment {deployment}"):
            self._apps.patch_namespaced_deployment_scale(
                deployment,
                self._namespace,
                {"spec": {"replicas": replicas}},
                _content_type=_MERGE,
                _request_timeout=_TIMEOUT_SECONDS,
            )


@contextlib.contextmanager
def own_namespace(namespace: str, *, component: str, instance: str) -> Iterator[ApiNamespace]:
    """The namespace that this pod runs in, by its service account.

    Raises:
        ClusterRefusedError: this is no pod, or it has no service account token.
    """
    configuration = client.Configuration()
    try:
        config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
    except config.ConfigException as error:
        raise ClusterRefusedError(
            f"no service account of a pod to speak to the API server with: {error}"
        ) from error
    configuration.retries = False
    with client.ApiClient(configuration) as api_client:
        yield ApiNamespace(api_client, namespace, component=component, instance=instance)


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)


@contextlib.contextmanager
def translated(what: str) -> Iterator[None]:
    """Turns what the official client raises into a ClusterError that says what was asked."""
    try:
        yield
    except client.ApiException as error:
        raise _kind_of(error)(f"{what}: {_said(error)}") from error
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise ClusterUnavailableError(f"{what}: {error}"[:_MAX_ERROR_CHARACTERS]) from error
    except (config.ConfigException, ValueError) as error:  # an empty token, an odd answer
        raise ClusterError(f"{what}: {error}"[:_MAX_ERROR_CHARACTERS]) from error


def _kind_of(error: client.ApiException) -> type[ClusterError]:
    status = error.status or 500
    if status in (401, 403):
        return ClusterRefusedError
    if status == 404:
        return ClusterNotFoundError
    if status in _PASSING_CODES or status >= 500:
        return ClusterUnavailableError
    return ClusterError


def _said(error: client.ApiException) -> str:
    """The API server's own words."""
    try:
        text = str(json.loads(error.body or "")["message"])
    except (ValueError, KeyError, TypeError):
        text = f"{error.status} {error.reason}"
    return " ".join(text.split())[:_MAX_ERROR_CHARACTERS]
