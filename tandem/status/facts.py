"""What is known of a run at one moment. Whoever gathers it measures ages; nothing here has a clock.

An age is in seconds, from the store's, or the API server's, time of writing to the look. `None`
means that nobody could tell; an absent thing is an empty tuple or None where it says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

SILENT_SECONDS = 60.0
"""A process that beats every 5 s or so and was not heard for this long shows no life."""

Fact = str | int | float | bool | None


class Access(Enum):
    """Why a run folder can't be looked at."""

    REFUSED = "refused"
    MISSING = "missing"
    UNAVAILABLE = "unavailable"
    SLOW = "slow"
    NO_RUN = "no run"
    DAMAGED = "damaged"


@dataclass(frozen=True)
class AccessProblem:
    """What stood in the way of looking, and the words for it."""

    kind: Access
    text: str


@dataclass(frozen=True)
class Hang:
    """What a process's watchdog says of a loop that doesn't come by any more.

    Attributes:
        place: where the loop is, as `waiting for data`.
        silent_seconds: for how long it had not come by when that was written.
        age_seconds: since that was written.
        stack: the innermost calls.
    """

    place: str
    silent_seconds: float
    age_seconds: float
    stack: str = ""


@dataclass(frozen=True)
class Trouble:
    """The last thing that went wrong in a process, in its own words."""

    kind: str
    text: str
    age_seconds: float | None = None


@dataclass(frozen=True)
class Process:
    """A trainer or an evaluator, by its heartbeat.

    Attributes:
        name: `trainer`, or the evaluator's name.
        phase: what it was doing.
        age_seconds: since it was last heard.
        step: that it was at, or evaluated.
        phase_seconds: for how long the phase has lasted, up to the look.
        attempt: the trainer's.
        clock_ahead_seconds: of its clock before the store's, at that beat.
        image: the software that it runs.
        facts: the rest of what it says of itself.
        hang: what its watchdog says now.
        trouble: what last went wrong.
    """

    name: str
    phase: str
    age_seconds: float
    step: int | None = None
    phase_seconds: float = 0.0
    attempt: int | None = None
    clock_ahead_seconds: float | None = None
    image: str = ""
    facts: Mapping[str, Fact] = field(default_factory=dict)
    hang: Hang | None = None
    trouble: Trouble | None = None

    @property
    def lives(self) -> bool:
        """Whether it was heard not long ago."""
        return self.age_seconds < SILENT_SECONDS

    def number(self, name: str) -> float | None:
        """A fact that is a number, if it says so."""
        value = self.facts.get(name)
        if not isinstance(value, int | float) or isinstance(value, bool):
            return None
        try:
            return float(value)
        except OverflowError:
            return None


@dataclass(frozen=True)
class AttemptFacts:
    """An attempt of the trainer; ages are None where it didn't come to that.

    Attributes:
        number: 1, 2, ...
        owner: who restarts it.
        holder: the process.
        image: the software.
        claimed_age_seconds: since it began.
        resumed_step: that it went on from.
        outcome: finished, failed or preempted; None while it runs, or when it was killed.
        reason: why it failed.
        cause: the kind of error that ended it.
        ended_age_seconds: since its end.
        config_diff: what it changed.
        final_step: that it ended at.
    """

    number: int
    owner: str = ""
    holder: str = ""
    image: str = ""
    claimed_age_seconds: float | None = None
    resumed_step: int | None = None
    outcome: str | None = None
    reason: str = ""
    cause: str = ""
    ended_age_seconds: float | None = None
    config_diff: tuple[str, ...] = ()
    final_step: int | None = None


@dataclass(frozen=True)
class Score:
    """The main metric of a checkpoint in an eval set."""

    step: int
    value: float | None
    age_seconds: float | None = None
    is_on_disk: bool = True


@dataclass(frozen=True)
class EvalSetFacts:
    """An eval set's ledger.

    Attributes:
        name: of the set.
        num_pending: checkpoints of the line that it has no entry for.
        last: the newest that was scored.
        best: the best.
        failed_step: the newest that was given up, and `failed_reason` why; None when a newer one
            was scored.
        num_tries: begun so far on the one that has most of them and no entry yet.
        seconds_per_evaluation: median of the newest ones.
    """

    name: str
    num_pending: int = 0
    last: Score | None = None
    best: Score | None = None
    failed_step: int | None = None
    failed_reason: str = ""
    num_tries: int = 0
    seconds_per_evaluation: float | None = None


@dataclass(frozen=True)
class CheckpointFacts:
    """The run's checkpoints.

    Attributes:
        newest_step: of the newest one; None while there is none.
        newest_age_seconds: since its commit.
        interval_seconds: median time between the newest commits.
        num_pending: that some eval set has no entry for.
        oldest_pending_age_seconds: since the oldest of them was committed.
        damaged: a line for each in quarantine.
        unreadable: records that can't be read.
        incomplete: files that the newest one lacks.
    """

    newest_step: int | None = None
    newest_age_seconds: float | None = None
    interval_seconds: float | None = None
    num_pending: int = 0
    oldest_pending_age_seconds: float | None = None
    damaged: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    incomplete: tuple[str, ...] = ()


@dataclass(frozen=True)
class PodFacts:
    """A pod of the experiment.

    Attributes:
        name: of the pod.
        component: trainer or evaluator.
        phase: Pending, Running, Succeeded, Failed.
        is_ready: whether its probes pass.
        waiting: why its container doesn't start (`ImagePullBackOff`), or why no node takes it
            (`Unschedulable`).
        message: the cluster's words for that.
        restarts: of its container.
        last_exit: reason of its container's last end, as `OOMKilled` or `Error`.
        exit_code: of that.
        exit_message: the container's last words.
        age_seconds: since it was made.
        disruption: why the cluster ended it, if it did.
    """

    name: str
    component: str
    phase: str
    is_ready: bool = False
    waiting: str = ""
    message: str = ""
    restarts: int = 0
    last_exit: str = ""
    exit_code: int | None = None
    exit_message: str = ""
    age_seconds: float = 0.0
    disruption: str = ""


@dataclass(frozen=True)
class EventFacts:
    """An Event: what the cluster, or a process of ours (`source` says which), said."""

    reason: str
    message: str
    subject: str
    is_warning: bool
    age_seconds: float
    count: int = 1
    source: str = ""


@dataclass(frozen=True)
class JobFacts:
    """The trainer's Job.

    Attributes:
        name: of the Job.
        phase: waiting, running, complete or failed.
        reason: of its failure or its waiting.
        message: the cluster's words for that.
        num_failed: pods that count as failures.
        num_pods: that it has now.
        is_suspended: whether something (Kueue, say) holds it back.
        queue: of Kueue, if it is in one.
        age_seconds: since it was made.
    """

    name: str
    phase: str
    reason: str = ""
    message: str = ""
    num_failed: int = 0
    num_pods: int = 0
    is_suspended: bool = False
    queue: str = ""
    age_seconds: float = 0.0


@dataclass(frozen=True)
class ClusterFacts:
    """A release's objects in its namespace.

    Attributes:
        namespace: where.
        release: its name.
        job: the trainer's newest Job; None when it is gone.
        evaluator_replicas: wanted; None when there is no such Deployment.
        pods: of trainer and evaluator, the newest first.
        events: the newest first.
    """

    namespace: str
    release: str
    job: JobFacts | None = None
    evaluator_replicas: int | None = None
    pods: tuple[PodFacts, ...] = ()
    events: tuple[EventFacts, ...] = ()

    def of(self, component: str) -> tuple[PodFacts, ...]:
        """The pods of a component, the newest first."""
        return tuple(pod for pod in self.pods if pod.component == component)


@dataclass(frozen=True)
class Room:
    """On the disk of a run folder that is local: what is free, and what the next save takes."""

    free_bytes: int
    needed_bytes: int


@dataclass(frozen=True)
class RunFacts:
    """A run.

    Attributes:
        location: of its folder.
        access: why that can't be looked at; everything below is then unknown.
        attempts: of the trainer, oldest first.
        trainer: by its heartbeat, of the newest attempt only.
        evaluators: by theirs.
        target_step: that training ends at; None while unknown, or without an end.
        checkpoints: all of them.
        eval_sets: each by itself.
        room: on the disk; None where the run folder is in a bucket.
        cluster: None when it wasn't asked.
        cluster_problem: why it couldn't be asked.
        clock_behind_seconds: how far the store's newest object lies ahead of this machine's clock.
        look_seconds: that the store took to answer all of this.
    """

    location: str
    access: AccessProblem | None = None
    attempts: tuple[AttemptFacts, ...] = ()
    trainer: Process | None = None
    evaluators: tuple[Process, ...] = ()
    target_step: int | None = None
    checkpoints: CheckpointFacts = CheckpointFacts()
    eval_sets: tuple[EvalSetFacts, ...] = ()
    room: Room | None = None
    cluster: ClusterFacts | None = None
    cluster_problem: str = ""
    clock_behind_seconds: float = 0.0
    look_seconds: float = 0.0

    @property
    def attempt(self) -> AttemptFacts | None:
        """The newest."""
        return self.attempts[-1] if self.attempts else None

    @property
    def outcome(self) -> str | None:
        """How the newest attempt ended; None while it runs, or was killed."""
        return self.attempts[-1].outcome if self.attempts else None

    @property
    def is_over(self) -> bool:
        """Whether nothing will be trained any more, as far as the run folder says."""
        return self.outcome in ("finished", "failed")

    @property
    def evaluator(self) -> Process | None:
        """The one that was heard last."""
        return min(self.evaluators, key=lambda one: one.age_seconds, default=None)
