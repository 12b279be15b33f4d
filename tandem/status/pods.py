"""Why a process that should run doesn't, as far as the cluster knows."""

from __future__ import annotations

from collections.abc import Iterator

from tandem.status.facts import ClusterFacts, EventFacts, PodFacts, RunFacts
from tandem.status.findings import Cause, Commands, Finding, Health
from tandem.status.words import age_text, one_line

_BAD_INPUT, _TRAINING_FAILED, _SUPERSEDED = 2, 3, 6
_IMAGE = ("ImagePull", "ErrImage", "InvalidImage", "RegistryUnavailable")
_ABOUT_QUOTA = ("exceeded quota", "forbidden: exceeded", "quota exceeded")
_RECENT_SECONDS = 3600.0
_LOOP = 3  # restarts
_OWN_WORDS = {
    "BadInput": (Cause.OURS, "bad-input", "TandemTrainerFailed"),
    "BadData": (Cause.DATA, "bad-input", "TandemTrainerFailed"),
    "TrainingFailed": (Cause.OURS, "training-failed", "TandemTrainerFailed"),
    "StorageFailed": (Cause.STORAGE, "store-refused", "TandemGcsErrorFastBurn"),
    "RunConflict": (Cause.OURS, "two-trainers", "TandemTwoTrainers"),
    "Superseded": (Cause.OURS, "two-trainers", "TandemTwoTrainers"),
}
"""Reasons of the Events by which a trainer that ends by itself says why."""


def find_trainer(facts: RunFacts) -> Iterator[Finding]:
    """What keeps the trainer's pod from training; the first one explains the others."""
    cluster = facts.cluster
    if cluster is None:
        return
    commands = Commands(facts)
    yield from _held_back(cluster, commands)
    yield from _not_started(cluster, "trainer", commands, Health.BROKEN)
    yield from _failed_trainer(cluster, commands)


def find_unseen(facts: RunFacts) -> Iterator[Finding]:
    """Whether the cluster was to be asked, and could not be."""
    if facts.cluster_problem:
        yield Finding(
            "cluster-unseen",
            Health.DEGRADED,
            Cause.UNKNOWN,
            f"only the run folder could be looked at: {one_line(facts.cluster_problem)}",
            Commands(facts).watch,
            "",
        )


def find_held_back(facts: RunFacts) -> Iterator[Finding]:
    """Whether the trainer's Job is suspended, however much alive its last pod still seems."""
    if facts.cluster is not None:
        yield from _held_back(facts.cluster, Commands(facts))


def find_killed_before(facts: RunFacts) -> Iterator[Finding]:
    """Whether a pod before the one that trains now was killed for its memory."""
    cluster = facts.cluster
    pods = cluster.of("trainer") if cluster is not None else ()
    if cluster is not None and pods and pods[0].age_seconds < _RECENT_SECONDS:
        for finding in _failed_trainer(cluster, Commands(facts)):
            if finding.code == "trainer-out-of-memory":
                yield finding._replace(health=Health.DEGRADED)


def find_evaluator(facts: RunFacts) -> Iterator[Finding]:
    """The same for the evaluator's."""
    cluster = facts.cluster
    if cluster is None:
        return
    commands = Commands(facts)
    yield from _not_started(cluster, "evaluator", commands, Health.DEGRADED)
    for pod in cluster.of("evaluator")[:1]:
        yield from _restarting(pod, commands)


def _held_back(cluster: ClusterFacts, commands: Commands) -> Iterator[Finding]:
    job = cluster.job
    if job is None or not job.is_suspended:
        return
    said = next((event for event in cluster.events if _is_of_queue(event)), None)
    words = said.message if said else job.message or job.reason
    queue = f" (queue {job.queue})" if job.queue else ""
    yield Finding(
        "kueue-evicted",
        Health.DEGRADED,
        Cause.QUOTA,
        f"the trainer's Job is held back{queue}: {one_line(words) or 'suspended'}",
        commands.describe("trainer"),
        "TandemTrainerNotStarted",
    )


def _is_of_queue(event: EventFacts) -> bool:
    is_ours = event.source.startswith("tandem-")  # a trainer that is asked to stop says so as well
    return (
        not is_ours
        and event.subject.startswith(("Job/", "Workload/"))
        and event.reason.startswith(("Stopped", "Evicted", "Preempted", "Pending"))
    )


def _not_started(
    cluster: ClusterFacts, component: str, commands: Commands, health: Health
) -> Iterator[Finding]:
    for pod in cluster.of(component)[:1]:
        if pod.phase != "Pending" and not pod.waiting.startswith(_IMAGE):
            continue
        if pod.waiting == "Unschedulable":
            yield Finding(
                "unschedulable",
                health,
                Cause.CLUSTER,
                f"no node takes the {component}'s pod for {age_text(pod.age_seconds)}: "
                f"{one_line(pod.message)}",
                commands.describe(component),
                "TandemPodUnschedulable",
            )
        elif pod.waiting.startswith(_IMAGE):
            yield Finding(
                "image-pull",
                health,
                Cause.OURS,
                f"the {component}'s image can't be pulled: {one_line(pod.message or pod.waiting)}",
                commands.describe(component),
                "TandemTrainerNotStarted",
            )
    if not any(pod.phase in ("Pending", "Running") for pod in cluster.of(component)):
        yield from _refused(cluster, component, commands, health)


def _refused(
    cluster: ClusterFacts, component: str, commands: Commands, health: Health
) -> Iterator[Finding]:
    refused = [
        event
        for event in cluster.events
        if event.reason == "FailedCreate"
        and event.age_seconds < _RECENT_SECONDS
        and f"-{component}" in event.subject
    ]
    for event in refused[:1]:
        is_quota = any(words in event.message for words in _ABOUT_QUOTA)
        yield Finding(
            "quota-exceeded" if is_quota else "pod-refused",
            health,
            Cause.QUOTA if is_quota else Cause.CLUSTER,
            f"the cluster refuses the {component}'s pod: {one_line(event.message)}",
            commands.describe(component),
            "TandemTrainerNotStarted",
        )


def _failed_trainer(cluster: ClusterFacts, commands: Commands) -> Iterator[Finding]:
    job = cluster.job
    pods = [p for p in cluster.of("trainer") if job is None or p.name.startswith(job.name)]
    # A new pod that isn't ready yet says nothing; the one before it may.
    pod = next((pod for pod in pods if pod.last_exit), next(iter(pods), None))
    is_over = job is not None and job.phase == "failed"
    if pod is not None and pod.last_exit == "OOMKilled":
        yield Finding(
            "trainer-out-of-memory",
            Health.BROKEN,
            Cause.OURS,
            f"the trainer needs more memory than its limit allows and was killed "
            f"({_times(sum(other.last_exit == pod.last_exit for other in pods))})",
            commands.describe("trainer"),
            "TandemTrainerFailed",
        )
    elif pod is not None and pod.exit_code in (_BAD_INPUT, _TRAINING_FAILED) and not pod.is_ready:
        yield _ended_itself(cluster, pod, commands)
    elif job is not None and is_over:
        exited = f"exit code {pod.exit_code}" if pod and pod.exit_code is not None else ""
        words = one_line((pod.exit_message if pod else "") or job.message or job.reason)
        is_superseded = pod is not None and pod.exit_code == _SUPERSEDED
        yield Finding(
            "two-trainers" if is_superseded else "training-failed",
            Health.BROKEN,
            Cause.OURS if is_superseded else Cause.UNKNOWN,
            f"the trainer's Job has failed ({exited or job.reason}): {words}",
            commands.logs("trainer"),
            "TandemTwoTrainers" if is_superseded else "TandemTrainerFailed",
        )


def _ended_itself(cluster: ClusterFacts, pod: PodFacts, commands: Commands) -> Finding:
    """The trainer said itself that it can't go on; its Event says why."""
    said = next((event for event in cluster.events if event.reason in _OWN_WORDS), None)
    cause, code, alert = _OWN_WORDS[said.reason if said else "BadInput"]
    if pod.exit_code == _TRAINING_FAILED:
        code = "training-failed"
    return Finding(
        code,
        Health.BROKEN,
        cause,
        f"the trainer can't go on: {one_line(said.message if said else pod.exit_message)}",
        commands.logs("trainer"),
        alert,
    )


def _restarting(pod: PodFacts, commands: Commands) -> Iterator[Finding]:
    is_looping = pod.waiting == "CrashLoopBackOff" or pod.restarts >= _LOOP
    if pod.last_exit == "OOMKilled":
        yield Finding(
            "evaluator-out-of-memory",
            Health.BROKEN if is_looping else Health.DEGRADED,
            Cause.OURS,
            "the evaluator needs more memory than its limit allows and was killed "
            f"({_times(pod.restarts)})",
            commands.describe("evaluator"),
            "TandemEvaluatorCrashLoop",
        )
    elif is_looping and not pod.is_ready:
        yield Finding(
            "evaluator-crash-loop",
            Health.BROKEN,
            Cause.OURS if pod.exit_code == _BAD_INPUT else Cause.UNKNOWN,
            f"the evaluator ends again and again (exit code {pod.exit_code}): "
            f"{one_line(pod.exit_message) or pod.last_exit}",
            commands.logs("evaluator", previous=True),
            "TandemEvaluatorCrashLoop",
        )


def _times(number: int) -> str:
    return "once" if number <= 1 else f"{number} times"
