"""Decides: which checkpoint next, and whether the watch is over. Pure.

The watch ends in a named state only. While the trainer's Job may still start a pod, only a signal
ends it: the outcome in the run is then that of an attempt before.

    Completed       the trainer finished, and every checkpoint of its line has its ledger entries
    TrainerFailed   the trainer ended as failed, or its Job did without a word of it, and every
                    checkpoint it left has them
    TimedOut        for `wait_interval` neither a new checkpoint nor a sign of life of the trainer,
                    and no Job that may still start one
    Stopped         a signal asked for it
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import Enum
from typing import Literal, NamedTuple

from tandem.checkpoints.attempts import Outcome
from tandem.checkpoints.names import CheckpointId
from tandem.kube.jobs import JobPhase

Policy = Literal["every", "newest-first"]


class Ending(Enum):
    """How a watch ends."""

    COMPLETED = "Completed"
    TRAINER_FAILED = "TrainerFailed"
    TIMED_OUT = "TimedOut"
    STOPPED = "Stopped"


class Situation(NamedTuple):
    """What a look at the run showed.

    Attributes:
        outcome: of the trainer's newest attempt; None while it runs, or was killed.
        pending: committed checkpoints that still lack an entry, whoever works on them.
        quiet_seconds: since a new checkpoint, an entry or a heartbeat of the trainer was seen
            first, on this process's own clock.
        job: how far the trainer's Job is; None where there is none, or nobody knows.
    """

    outcome: Outcome | None
    pending: Collection[CheckpointId]
    quiet_seconds: float
    job: JobPhase | None = None


def ending(situation: Situation, *, wait_interval: float) -> Ending | None:
    """The state to end in, or None to go on watching."""
    if situation.pending:
        return None
    if situation.job is not None and not situation.job.is_over:
        return None  # the trainer may still come: an outcome is that of an attempt before it
    if situation.outcome is Outcome.FINISHED:
        return Ending.COMPLETED
    if situation.outcome is Outcome.FAILED or situation.job is JobPhase.FAILED:
        return Ending.TRAINER_FAILED
    return Ending.TIMED_OUT if situation.quiet_seconds >= wait_interval else None


def in_order(pending: Sequence[CheckpointId], policy: Policy) -> list[CheckpointId]:
    """The pending checkpoints in the order to try them.

    `every` begins with the oldest; `newest-first` with the newest and fills in the rest when
    nothing newer has come.
    """
    return sorted(pending, reverse=policy == "newest-first")
