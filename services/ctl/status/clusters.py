"""From what the API server says of a namespace to what the diagnosis needs, by release."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TypeVar

from services.ctl.status.hurrying import Answer, Hurry, TooLateError
from tandem.errors import ClusterError, ClusterUnavailableError
from tandem.kube.looking import (
    Onlooker,
    SeenDeployment,
    SeenEvent,
    SeenJob,
    SeenPod,
    looking,
)
from tandem.status.facts import ClusterFacts, EventFacts, JobFacts, PodFacts

_Found = TypeVar("_Found")


@dataclass(frozen=True)
class Release:
    """An experiment in a namespace: its run folder, if anyone says, and its objects."""

    name: str
    namespace: str
    run: str
    facts: ClusterFacts

    @property
    def title(self) -> str:
        """Namespace and name."""
        return f"{self.namespace}/{self.name}"


class NamespaceLook:
    """A look at one namespace, whose four questions are asked at once.

    Args:
        onlooker: asks.
        namespace: to look at.
        hurry: until when.
    """

    def __init__(self, onlooker: Onlooker, namespace: str, hurry: Hurry) -> None:
        self._namespace = namespace
        self._hurry = hurry
        self._jobs = hurry.ask(lambda: onlooker.jobs(namespace))
        self._deployments = hurry.ask(lambda: onlooker.deployments(namespace))
        self._pods = hurry.ask(lambda: onlooker.pods(namespace))
        self._events = hurry.ask(lambda: onlooker.events(namespace))

    def releases(self) -> list[Release]:
        """The experiments, by name.

        Raises:
            ClusterError: the API server refused, or didn't answer in time.
        """
        jobs, deployments = self._result(self._jobs), self._result(self._deployments)
        pods = self._result(self._pods)
        try:
            events = self._result(self._events)
        except ClusterError:  # a right that people lack more often, and can do without
            events = []
        names = {job.release for job in jobs} | {one.release for one in deployments}
        return [self._release(name, jobs, deployments, pods, events) for name in sorted(names)]

    def _result(self, answer: Answer[_Found]) -> _Found:
        try:
            return self._hurry.result(answer)
        except TooLateError:
            raise ClusterUnavailableError(
                f"the API server took too long to tell of namespace {self._namespace}"
            ) from None

    def _release(
        self,
        name: str,
        jobs: list[SeenJob],
        deployments: list[SeenDeployment],
        pods: list[SeenPod],
        events: list[SeenEvent],
    ) -> Release:
        job = next((job for job in jobs if job.release == name), None)
        evaluator = next((one for one in deployments if one.release == name), None)
        mine = tuple(_pod(pod) for pod in pods if pod.release == name and pod.component)
        subjects = {f"Pod/{pod.name}" for pod in mine}
        if job is not None:
            subjects |= {f"Job/{job.name}"}
        facts = ClusterFacts(
            namespace=self._namespace,
            release=name,
            job=_job(job, mine) if job else None,
            evaluator_replicas=evaluator.replicas if evaluator else None,
            pods=mine,
            events=tuple(
                _event(event)
                for event in events
                if event.subject in subjects or _is_about(event.subject, job, evaluator)
            ),
        )
        run = (job.run if job else "") or (evaluator.run if evaluator else "")
        return Release(name, self._namespace, run, facts)


def _is_about(subject: str, job: SeenJob | None, evaluator: SeenDeployment | None) -> bool:
    """Whether an Event is about what a release's objects have made: ReplicaSets, Workloads."""
    kind, _, name = subject.partition("/")
    if evaluator is not None and kind in ("Deployment", "ReplicaSet"):
        return name == evaluator.name or name.startswith(f"{evaluator.name}-")
    return job is not None and kind in ("Workload", "JobSet") and job.name in name


def _job(job: SeenJob, pods: tuple[PodFacts, ...]) -> JobFacts:
    return JobFacts(
        name=job.name,
        phase=job.state.phase.value,
        reason=job.state.reason,
        message=job.state.message,
        num_failed=job.state.num_failed,
        num_pods=sum(pod.component == "trainer" for pod in pods),
        is_suspended=job.is_suspended,
        queue=job.queue,
        age_seconds=job.age_seconds,
    )


def _pod(pod: SeenPod) -> PodFacts:
    values = pod._asdict()
    del values["release"]
    return PodFacts(**values)


def _event(event: SeenEvent) -> EventFacts:
    return EventFacts(
        reason=event.reason,
        message=event.message,
        subject=event.subject,
        source=event.source,
        is_warning=event.is_warning,
        age_seconds=event.age_seconds,
        count=event.times,
    )


def targets(
    *, namespaces: list[str] | None, run: str | None, seconds: float
) -> list[Release] | ClusterError:
    """The releases to look at, or why nobody can tell.

    Args:
        namespaces: to look in; None for all that have experiments.
        run: a run folder or a release's name, to leave the others out.
        seconds: until the answers must be there.
    """
    try:
        with ExitStack() as ends, Hurry(seconds=seconds) as hurry:
            # A kubeconfig may name a program that fetches credentials, which may hang.
            opened = hurry.ask(lambda: ends.enter_context(looking(seconds=seconds)))
            onlooker = _in_time(opened, hurry)
            if namespaces is None:
                namespaces = _in_time(hurry.ask(onlooker.namespaces), hurry)
            looks = [NamespaceLook(onlooker, namespace, hurry) for namespace in namespaces]
            found = [release for look in looks for release in look.releases()]
    except ClusterError as error:
        return error
    return [one for one in found if run is None or run in (one.name, one.run)]


def _in_time(answer: Answer[_Found], hurry: Hurry) -> _Found:
    try:
        return hurry.result(answer)
    except TooLateError:
        raise ClusterUnavailableError(
            "the API server, or a program that fetches credentials for it, took too long to answer"
        ) from None
