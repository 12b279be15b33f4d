"""What a Job's status says about the trainer that it runs. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple


class JobPhase(Enum):
    """How far a Job is.

    `WAITING` is admitted or not, but without a pod that runs: suspended (by Kueue, say), or its pod
    finds no node yet.
    """

    WAITING = "waiting"
    RUNNING = "running"
    COMPLETE = "complete"
    FAILED = "failed"

    @property
    def is_over(self) -> bool:
        """Whether the Job starts no pod any more."""
        return self in (JobPhase.COMPLETE, JobPhase.FAILED)


class Condition(NamedTuple):
    """A condition of a Job's status (batch/v1 JobCondition)."""

    type: str
    is_true: bool
    reason: str = ""
    message: str = ""


class JobState(NamedTuple):
    """What is known of a Job.

    Attributes:
        phase: how far it is.
        reason: of its failure or its waiting, as Kubernetes names it; may be empty.
        message: the same for people.
        num_failed: pods that count as failures against `backoffLimit`.
    """

    phase: JobPhase
    reason: str = ""
    message: str = ""
    num_failed: int = 0


def job_state(
    conditions: Sequence[Condition], *, num_ready: int, num_failed: int, is_suspended: bool
) -> JobState:
    """Reads a Job's status.

    Args:
        conditions: those of the status. `FailureTarget` and `SuccessCriteriaMet` come some moments
            before `Failed` and `Complete`, when the outcome is decided and pods still end.
        num_ready: pods that are ready.
        num_failed: pods that failed.
        is_suspended: whether the spec says so.
    """
    true = {condition.type: condition for condition in conditions if condition.is_true}
    for name in ("Failed", "FailureTarget"):
        if name in true:
            return JobState(JobPhase.FAILED, true[name].reason, true[name].message, num_failed)
    if "Complete" in true or "SuccessCriteriaMet" in true:
        return JobState(JobPhase.COMPLETE, num_failed=num_failed)
    if is_suspended:
        suspended = true.get("Suspended", Condition("Suspended", is_true=True))
        return JobState(
            JobPhase.WAITING, suspended.reason or "Suspended", suspended.message, num_failed
        )
    phase = JobPhase.RUNNING if num_ready else JobPhase.WAITING
    return JobState(phase, num_failed=num_failed)
