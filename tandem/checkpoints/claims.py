"""Claiming an attempt.

1. Wait for one's turn: the newest attempt has ended, or is of the same owner, or its trainer has
   been silent for `lease_seconds`. If it shows life, give up, naming its holder.
2. Choose the newest sound checkpoint on the line, and claim the next number with it.
3. List again. A newer attempt: stop. The newest sound checkpoint is another one by now (an older
   attempt committed in between): claim the next number from that; if it is taken, stop.

So the attempt that goes on names a checkpoint that was the newest after the claim; and an older
attempt that commits later finds the claim, or its commit is void.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tandem.checkpoints import names, writing
from tandem.checkpoints.attempts import Attempt
from tandem.checkpoints.heartbeats import TRAINER, HeartbeatWatcher
from tandem.checkpoints.lines import Line, LineReader
from tandem.checkpoints.names import CheckpointId, EvalSet
from tandem.checkpoints.objects import ObjectStore
from tandem.checkpoints.policies import RetentionPolicy
from tandem.checkpoints.records import decode, encode
from tandem.checkpoints.surroundings import SYSTEM, Surroundings
from tandem.errors import AttemptSupersededError, ObjectExistsError, RunConflictError

_LOOK_EVERY_SECONDS = 5.0
_logger = logging.getLogger(__name__)


def _log(message: str) -> None:
    _logger.warning("%s", message)


def _none_lost(before: Attempt, resumed_from: CheckpointId | None) -> int:
    return 0


def claim_attempt(
    store: ObjectStore,
    *,
    owner: str,
    holder: str,
    image: str,
    config_text: str,
    config_digest: str,
    config_diff: Callable[[str], Sequence[str]],
    retention: RetentionPolicy | None = None,
    eval_sets: Sequence[EvalSet] = (),
    takeover: bool = False,
    lease_seconds: float = 60.0,
    lost_steps: Callable[[Attempt, CheckpointId | None], int] = _none_lost,
    on_wait: Callable[[str], None] = _log,
    surroundings: Surroundings = SYSTEM,
) -> Attempt:
    """Claims the run's next attempt for this process.

    Args:
        store: the run's store.
        owner: who trains: what stays the same when the same Job starts again.
        holder: this process, for people.
        image: the software, for people.
        config_text: the effective configuration.
        config_digest: its digest.
        config_diff: from the configuration of the attempt before to the lines that differ.
        retention: how much this attempt keeps.
        eval_sets: what its checkpoints are evaluated on.
        takeover: don't wait for another owner's attempt, nor give way to it.
        lease_seconds: how long another owner's trainer must be silent.
        lost_steps: from the attempt before and the checkpoint to resume from to the steps that are
            to be trained again.
        on_wait: is told, once, when that takes time.
        surroundings: clock, sleep, randomness.

    Raises:
        RunConflictError: another owner's trainer lives.
        AttemptSupersededError: another process of the same owner was faster.
    """
    claimant = _Claimant(
        owner, holder, image, config_text, config_digest, config_diff,
        retention or RetentionPolicy(), tuple(eval_sets), lost_steps,
    )  # fmt: skip
    reader = LineReader(store)
    line = _wait_for_turn(
        store, reader, owner, takeover=takeover, lease_seconds=lease_seconds, on_wait=on_wait,
        surroundings=surroundings,
    )  # fmt: skip
    while True:
        attempt = claimant.next_attempt(line, surroundings=surroundings)
        _put_claim(store, attempt, surroundings=surroundings)
        line = reader.read()
        newest = line.newest_attempt
        if newest is not None and newest.number > attempt.number:
            raise _taken_by(store, newest, owner=owner)
        if line.newest_sound == attempt.resumed_from:
            return attempt


class _Claimant(NamedTuple):
    """Who claims; the fields are those of `claim_attempt`."""

    owner: str
    holder: str
    image: str
    config_text: str
    config_digest: str
    config_diff: Callable[[str], Sequence[str]]
    retention: RetentionPolicy
    eval_sets: tuple[EvalSet, ...]
    lost_steps: Callable[[Attempt, CheckpointId | None], int]

    def next_attempt(self, line: Line, *, surroundings: Surroundings) -> Attempt:
        before = line.newest_attempt
        return Attempt(
            nonce=surroundings.nonce(),
            number=before.number + 1 if before else 1,
            resumed_from=line.newest_sound,
            owner=self.owner,
            holder=self.holder,
            image=self.image,
            config_digest=self.config_digest,
            config_text=self.config_text,
            config_diff=tuple(self.config_diff(before.config_text)) if before else (),
            claimed_at=surroundings.timestamp(),
            retention=self.retention,
            eval_sets=self.eval_sets,
            lost_steps=self.lost_steps(before, line.newest_sound) if before else 0,
        )


def _put_claim(store: ObjectStore, attempt: Attempt, *, surroundings: Surroundings) -> None:
    name = names.attempt_name(attempt.number)
    try:
        writing.create(store, name, encode(attempt), surroundings=surroundings)
    except ObjectExistsError as error:
        winner = decode(store.get(name).data, Attempt, name=name)
        raise _taken_by(store, winner, owner=attempt.owner) from error


def _taken_by(
    store: ObjectStore, winner: Attempt, *, owner: str
) -> AttemptSupersededError | RunConflictError:
    if winner.owner == owner:
        return AttemptSupersededError(
            f"{winner.holder} has just claimed attempt {winner.number} of the run {store.location} "
            "for the same owner"
        )
    return _conflict(store, winner, "has just started")


def _conflict(store: ObjectStore, other: Attempt, what: str) -> RunConflictError:
    return RunConflictError(
        f"the run {store.location} is being trained by {other.holder} (attempt {other.number}, "
        f"owner {other.owner}), which {what}: stop that trainer, give another run folder, or "
        "insist with --takeover"
    )


def _wait_for_turn(
    store: ObjectStore,
    reader: LineReader,
    owner: str,
    *,
    takeover: bool,
    lease_seconds: float,
    on_wait: Callable[[str], None],
    surroundings: Surroundings,
) -> Line:
    watcher = HeartbeatWatcher(store, TRAINER, surroundings=surroundings)
    first: Attempt | None = None
    while True:
        line = reader.read()
        other = line.newest_attempt
        if other is None or takeover or other.owner == owner or other.number in line.ends:
            return line
        view = watcher.look()
        if view.has_changed or (first is not None and first != other):
            raise _conflict(store, other, "shows life")
        if view.unchanged_seconds >= lease_seconds:
            return line
        if first is None:
            first = other
            on_wait(
                f"attempt {other.number} of {other.holder} has not ended; waiting up to "
                f"{lease_seconds:g} s to see whether it lives"
            )
        remaining = lease_seconds - view.unchanged_seconds
        surroundings.sleep(min(_LOOK_EVERY_SECONDS, remaining))
