"""Cleaning up after a trainer that has gone: what the next attempt would do, without training.

1. The newest attempt must have ended, or its trainer must be *seen* silent for `lease_seconds`; one
   that shows life cleans up by itself.
2. Act as that attempt, and only if it is the head of the line: else the older line may yet go on.
3. Leases are watched through those same `lease_seconds`, unless they are seen to change sooner:
   those that stay unchanged are stale.
4. One pass of `tandem.checkpoints.retiring`, by the policy that is recorded with the attempt, and
   the state file where it is late.

Beside another such cleaner, a trainer that wakes up, or evaluators, this is one more process that
retires for the same attempt. All that decides is looked at again just before each intent, and every
step can be repeated; so the two can only do the same.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NamedTuple

from tandem.checkpoints import names, writing
from tandem.checkpoints.attempts import Attempt, newest_attempt_number
from tandem.checkpoints.heartbeats import TRAINER, HeartbeatWatcher
from tandem.checkpoints.lines import Line, LineReader
from tandem.checkpoints.names import CheckpointId
from tandem.checkpoints.objects import ObjectStore
from tandem.checkpoints.retiring import Plan, Retirer, Swept
from tandem.checkpoints.state_file import paths_named, write_state_file
from tandem.checkpoints.surroundings import SYSTEM, Surroundings
from tandem.errors import RunConflictError

_LOOK_EVERY_SECONDS = 5.0
_logger = logging.getLogger(__name__)


class Retired(NamedTuple):
    """A checkpoint that went (or would go), and why."""

    checkpoint: CheckpointId
    reason: str


class Waiting(NamedTuple):
    """A checkpoint that is to go, or has gone but for leases, and the objects that keep it."""

    checkpoint: CheckpointId
    kept_by: tuple[str, ...]


class Collected(NamedTuple):
    """What was done; of a dry run, what would be.

    Attributes:
        attempt: the attempt that it was done for; None where none was claimed.
        retired: checkpoints that are gone.
        swept: leftovers that are gone.
        waiting: checkpoints that are to go but are kept for now.
        state_file: whether TensorFlow's state file names others than before.
        left: what was left alone, and why, in words.
    """

    attempt: int | None
    retired: tuple[Retired, ...] = ()
    swept: tuple[Swept, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    state_file: bool = False
    left: tuple[str, ...] = ()


def _log(message: str) -> None:
    _logger.warning("%s", message)


def collect(
    store: ObjectStore,
    *,
    lease_seconds: float = 60.0,
    dry_run: bool = False,
    on_wait: Callable[[str], None] = _log,
    surroundings: Surroundings = SYSTEM,
) -> Collected:
    """Retires and sweeps on behalf of the newest attempt.

    Args:
        store: the run's store.
        lease_seconds: how long a trainer or a reader must be silent to be taken for gone.
        dry_run: write nothing; say what would be done.
        on_wait: is told when that takes time.
        surroundings: clock, sleep, randomness.

    Raises:
        RunConflictError: the newest attempt's trainer lives.
        AttemptSupersededError: an attempt began meanwhile.
    """
    lines = LineReader(store)
    line = lines.read()
    attempt = line.newest_attempt
    if attempt is None:
        return Collected(None, left=("no trainer has begun here, so there is nothing to clean up",))
    collector = _Collector(store, attempt, lines, lease_seconds, on_wait, surroundings)
    if line.head != attempt.number:
        return Collected(attempt.number, left=(_why_not_head(line, attempt),))
    collector.wait_until_silent()
    plan = collector.wait_for_leases()
    return collector.foresee(plan) if dry_run else collector.carry_out(plan)


class _Collector:
    """One cleaning, for one attempt."""

    def __init__(
        self,
        store: ObjectStore,
        attempt: Attempt,
        lines: LineReader,
        lease_seconds: float,
        on_wait: Callable[[str], None],
        surroundings: Surroundings,
    ) -> None:
        self._store = store
        self._attempt = attempt
        self._lines = lines
        self._lease_seconds = lease_seconds
        self._on_wait = on_wait
        self._surroundings = surroundings
        self._retirer = Retirer(
            store, attempt, lease_seconds=lease_seconds, surroundings=surroundings
        )
        self._retirer.plan()  # from here on its leases age
        self._began = surroundings.monotonic()

    def wait_until_silent(self) -> None:
        """Returns when the attempt has ended, or its trainer was silent for `lease_seconds`."""
        watcher = HeartbeatWatcher(self._store, TRAINER, surroundings=self._surroundings)
        has_told = False
        while self._attempt.number not in self._lines.read().ends:
            view = watcher.look()
            newest = newest_attempt_number(self._store)
            if view.has_changed or newest != self._attempt.number:
                raise self._conflict(newest)
            remaining = self._lease_seconds - view.unchanged_seconds
            if remaining <= 0:
                return
            if not has_told:
                self._on_wait(
                    f"attempt {self._attempt.number} of {self._attempt.holder} has not ended; "
                    f"waiting up to {self._lease_seconds:g} s to see whether its trainer lives"
                )
                has_told = True
            self._surroundings.sleep(min(_LOOK_EVERY_SECONDS, remaining))

    def wait_for_leases(self) -> Plan:
        """What is to go, once each lease was seen to change or had `lease_seconds` to do so."""
        deadline = self._began + self._lease_seconds
        has_told = False
        while self._retirer.has_open_leases():
            remaining = deadline - self._surroundings.monotonic()
            if remaining <= 0:
                break  # those that are open still came later
            if not has_told:
                self._on_wait(
                    f"waiting up to {remaining:.0f} s to see whether the leases are still in use"
                )
                has_told = True
            self._surroundings.sleep(min(_LOOK_EVERY_SECONDS, remaining))
        return self._retirer.plan()

    def foresee(self, plan: Plan) -> Collected:
        """What `carry_out` would do."""
        waiting = self._waiting(plan)
        kept = {w.checkpoint for w in waiting}
        retired = tuple(r for r in _to_go(plan) if r.checkpoint not in kept)
        line = self._lines.read()
        readable = [c for c in line.readable if c not in plan.unheld]
        return Collected(
            self._attempt.number,
            retired=retired,
            swept=plan.leftovers,
            waiting=waiting,
            state_file=self._named() != {f"ckpt-{c}" for c in readable},
            left=tuple(self._left(line)),
        )

    def carry_out(self, plan: Plan) -> Collected:
        """Retires and sweeps."""
        named = self._named()
        done = self._retirer.run_pass()
        if self._named() != {f"ckpt-{c}" for c in self._lines.read().readable}:
            write_state_file(self._store, lines=self._lines, surroundings=self._surroundings)
        reasons = {r.checkpoint: r.reason for r in _to_go(plan)}
        return Collected(
            self._attempt.number,
            retired=tuple(Retired(c, reasons.get(c, _UNHELD)) for c in done.retired),
            swept=done.swept,
            waiting=self._waiting(self._retirer.plan()),
            state_file=self._named() != named,
            left=tuple(self._left(self._lines.read())),
        )

    def _waiting(self, plan: Plan) -> tuple[Waiting, ...]:
        found = dict.fromkeys((*plan.under_way, *plan.void, *plan.leased, *plan.orphaned))
        kept = [Waiting(c, self._retirer.obstacles(c)) for c in found]
        return tuple(waiting for waiting in kept if waiting.kept_by)

    def _named(self) -> set[str]:
        found = writing.find(self._store, names.STATE_FILE)
        return set(paths_named(found.data.decode(errors="replace"))) if found else set()

    def _left(self, line: Line) -> list[str]:
        number = self._attempt.number
        own = sorted(c for c in line.uncommitted - line.retiring if c.attempt == number)
        if not own or number in line.ends:
            return []
        return [
            f"data without a commit of {', '.join(map(str, own))}: attempt {number} has not ended, "
            "so it may yet commit them; the next attempt sweeps them"
        ]

    def _conflict(self, newest: int) -> RunConflictError:
        if newest != self._attempt.number:
            return RunConflictError(
                f"attempt {newest} of the run {self._store.location} has just begun; it cleans up "
                "by itself, so nothing was done"
            )
        return RunConflictError(
            f"the run {self._store.location} is being trained by {self._attempt.holder} (attempt "
            f"{self._attempt.number}), which shows life; it cleans up by itself, so nothing was "
            "done"
        )


_UNHELD = "not kept by the retention policy"


def _to_go(plan: Plan) -> list[Retired]:
    return [
        *(Retired(c, "its retiring had begun") for c in plan.under_way),
        *(Retired(c, _UNHELD) for c in plan.unheld),
        *(Retired(c, "void: not on the line of attempts") for c in plan.void),
    ]


def _why_not_head(line: Line, attempt: Attempt) -> str:
    end = line.ends.get(attempt.number)
    state = f"ended ({end.outcome})" if end else "has not ended"
    older = f"the checkpoints of attempt {line.head} are" if line.head else "nothing is"
    return (
        f"attempt {attempt.number} {state} and has no checkpoint of its own yet: {older} what a "
        "restart would begin from, and the next attempt that commits a checkpoint cleans up"
    )
