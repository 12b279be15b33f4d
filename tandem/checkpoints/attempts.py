"""Attempts of the trainer: their records, their ends, and the question whether one is current.

`attempts/0002.json` claims number 2 for good; `attempts/0002.end.json` is the attempt's last act.
A killed attempt has no end. Which attempts and checkpoints count is decided in
`tandem.checkpoints.lines`, how an attempt is claimed in `tandem.checkpoints.claims`.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated, ClassVar

from pydantic import PlainSerializer

from tandem.checkpoints import names, writing
from tandem.checkpoints.names import EvalSet
from tandem.checkpoints.objects import ObjectStore
from tandem.checkpoints.policies import RetentionPolicy
from tandem.checkpoints.records import CheckpointField, Record, encode
from tandem.checkpoints.surroundings import SYSTEM, Surroundings
from tandem.errors import AttemptSupersededError, RunConflictError


class Outcome(str, Enum):
    """How an attempt ended."""

    FINISHED = "finished"
    FAILED = "failed"
    PREEMPTED = "preempted"

    def __str__(self) -> str:
        return self.value


EvalSetField = Annotated[
    EvalSet, PlainSerializer(lambda eval_set: eval_set._asdict(), return_type=dict[str, str])
]
"""An `EvalSet` that is written as `{"name": "val", "digest": "4b6f..."}`."""


class Attempt(Record):
    """A claimed attempt.

    Attributes:
        number: 1, 2, ...; never used twice.
        resumed_from: the checkpoint that training goes on from; None from the beginning.
        owner: stays the same when the same Job (or the same user on one machine) starts again.
        holder: the process, for people: host and process id, or pod.
        image: the software, for people.
        config_digest: digest of the effective configuration.
        config_text: that configuration.
        config_diff: what is different from the attempt before, a line per field.
        claimed_at: wall clock, for people.
        retention: how much is kept.
        eval_sets: what each checkpoint is evaluated on.
        lost_steps: steps that the attempt before trained after the checkpoint that this one goes on
            from, as far as its heartbeat tells; this one trains them again.
    """

    kind: ClassVar[str] = "attempt"
    number: int
    resumed_from: CheckpointField | None
    owner: str
    holder: str
    image: str
    config_digest: str
    config_text: str
    config_diff: tuple[str, ...]
    claimed_at: str
    retention: RetentionPolicy = RetentionPolicy()
    eval_sets: tuple[EvalSetField, ...] = ()
    lost_steps: int = 0


class AttemptEnd(Record):
    """How an attempt ended.

    Attributes:
        number: the attempt's.
        outcome: how it ended.
        reason: why, for people.
        final_step: the newest it has trained or taken over, if any.
        ended_at: wall clock, for people.
        cause: class of the error that ended it, as `NonFiniteLossError`; empty without one.
    """

    kind: ClassVar[str] = "attempt-end"
    number: int
    outcome: Outcome
    reason: str
    final_step: int | None
    ended_at: str
    cause: str = ""


def newest_attempt_number(store: ObjectStore) -> int:
    """The highest number claimed so far; 0 when none is."""
    found = map(names.parse_attempt_object, store.list(names.ATTEMPTS))
    return max((attempt.number for attempt in found if attempt), default=0)


def attempt_is_current(store: ObjectStore, attempt: Attempt) -> bool:
    """Whether no newer attempt of the run has been claimed."""
    return newest_attempt_number(store) <= attempt.number


def stop_if_superseded(store: ObjectStore, attempt: Attempt) -> None:
    """Raises when an attempt has nothing to do in the run any more.

    Raises:
        AttemptSupersededError: a newer one exists.
        RunConflictError: its own record is gone.
    """
    newest = newest_attempt_number(store)
    if newest < attempt.number:
        raise RunConflictError(
            f"the run {store.location} was deleted or replaced while attempt {attempt.number} "
            f"trained: {names.attempt_name(attempt.number)} is gone, expected to stay as long as "
            "the run; start the trainer again to begin anew"
        )
    if newest > attempt.number:
        raise AttemptSupersededError(
            f"attempt {attempt.number} of the run {store.location} stops, as attempt {newest} has "
            "taken over"
        )


def end_attempt(
    store: ObjectStore,
    attempt: Attempt,
    *,
    outcome: Outcome,
    reason: str = "",
    cause: str = "",
    final_step: int | None = None,
    surroundings: Surroundings = SYSTEM,
) -> AttemptEnd:
    """Records how an attempt ended: the trainer's last act.

    Raises:
        AttemptSupersededError: a newer attempt exists; whether the run is finished is now its word.
    """
    stop_if_superseded(store, attempt)
    end = AttemptEnd(
        nonce=surroundings.nonce(),
        number=attempt.number,
        outcome=outcome,
        reason=reason,
        final_step=final_step,
        ended_at=surroundings.timestamp(),
        cause=cause,
    )
    name = names.end_name(attempt.number)
    writing.create(store, name, encode(end), surroundings=surroundings)
    return end
