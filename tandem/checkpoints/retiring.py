"""Retiring: how a checkpoint that is not held goes, without taking it from under anyone.

Only the current attempt retires, and only once it has a commit of its own (before that its line may
yet be given up for the older one's). For each checkpoint, in this order:

1. record `skipped` in every ledger that lacks an entry;
2. look at the best again: an evaluation that finished meanwhile may have made it the best;
3. list attempts: a newer one, stop;
4. put the intent, which is never taken back;
5. look at its leases: a live one, leave it at that until the next pass;
6. state file, commit, data, intent: readers by name find no commit before data go, and the intent
   goes last, so that a crash is found again.

After a crash: again from 5 where the commit stands, from the data where it is gone. A void commit
takes the same way from 3. Data that never got a commit are swept only of attempts below the head:
what such an attempt commits later is void anyway, whereas the head's own may be just being written.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from tandem.checkpoints import names, writing
from tandem.checkpoints.attempts import Attempt, stop_if_superseded
from tandem.checkpoints.bests import best_entry
from tandem.checkpoints.leases import LeaseWatch
from tandem.checkpoints.ledger import (
    EntryOutcome,
    LedgerEntry,
    LedgerReader,
    record_entry,
    recorded_checkpoints,
)
from tandem.checkpoints.lines import Line, LineReader
from tandem.checkpoints.names import CheckpointId, EvalSet
from tandem.checkpoints.objects import ObjectStore
from tandem.checkpoints.records import CheckpointField, Record, encode
from tandem.checkpoints.retention import RetentionPolicy, held, to_retire
from tandem.checkpoints.state_file import write_state_file
from tandem.checkpoints.surroundings import SYSTEM, Surroundings
from tandem.errors import ObjectExistsError, ObjectNotFoundError


class Intent(Record):
    """That a checkpoint is about to be deleted."""

    kind: ClassVar[str] = "intent"
    checkpoint: CheckpointField
    attempt: int
    reason: str
    decided_at: str


class RetiringPass(NamedTuple):
    """What a pass did: checkpoints that are gone, and those that a live lease still keeps."""

    retired: tuple[CheckpointId, ...]
    waiting: tuple[CheckpointId, ...]


class Retirer:
    """Retires for one attempt; keep it from pass to pass, it measures how old leases are."""

    def __init__(
        self,
        store: ObjectStore,
        attempt: Attempt,
        *,
        policy: RetentionPolicy,
        eval_sets: Sequence[EvalSet],
        lease_seconds: float = 60.0,
        surroundings: Surroundings = SYSTEM,
    ) -> None:
        self._store = store
        self._attempt = attempt
        self._policy = policy
        self._eval_sets = tuple(eval_sets)
        self._surroundings = surroundings
        self._lines = LineReader(store)
        self._ledger = LedgerReader(store)
        self._leases = LeaseWatch(store, lease_seconds=lease_seconds, surroundings=surroundings)

    def run_pass(self) -> RetiringPass:
        """Retires what isn't held, and goes on with what is under way.

        Raises:
            AttemptSupersededError: a newer attempt exists.
        """
        stop_if_superseded(self._store, self._attempt)
        line = self._lines.read()
        if not any(c.attempt == self._attempt.number for c in line.checkpoints):
            return RetiringPass((), ())  # without a commit of our own
        done = [c for c in sorted(line.retiring) if self._carry_out(c)]
        done += [c for c in self._to_retire(line) if self._retire(c, line)]
        void = [c for c in line.void if c not in line.retiring]
        done += [c for c in void if self._decide(c, "void")]
        self._sweep(line)
        return RetiringPass(tuple(done), tuple(sorted(self._lines.read().retiring)))

    def _to_retire(self, line: Line) -> tuple[CheckpointId, ...]:
        evaluated = frozenset(line.checkpoints)
        for eval_set in self._eval_sets:
            evaluated &= recorded_checkpoints(self._store, eval_set)
        kept = held(
            line,
            self._policy,
            best=self._best(line),
            leased=self._leases.live_checkpoints(),
            evaluated=evaluated,
        )
        return to_retire(line, kept)

    def _best(self, line: Line) -> frozenset[CheckpointId]:
        """The best of each evaluation set; one that can't be read any more is no candidate."""
        found = (
            best_entry(
                self._ledger.read(eval_set), metric=self._policy.best_metric, among=line.readable
            )
            for eval_set in self._eval_sets
        )
        return frozenset(entry.checkpoint for entry in found if entry is not None)

    def _retire(self, checkpoint: CheckpointId, line: Line) -> bool:
        for eval_set in self._eval_sets:
            record_entry(
                self._store, self._skipped(checkpoint, eval_set), surroundings=self._surroundings
            )
        if checkpoint in self._best(line):
            return False
        return self._decide(checkpoint, "not kept by the retention policy")

    def _skipped(self, checkpoint: CheckpointId, eval_set: EvalSet) -> LedgerEntry:
        return LedgerEntry(
            nonce=self._surroundings.nonce(),
            checkpoint=checkpoint,
            eval_set=eval_set.name,
            set_digest=eval_set.digest,
            outcome=EntryOutcome.SKIPPED,
            reasons=("retired before it was evaluated",),
            recorded_by=self._attempt.holder,
            recorded_at=self._surroundings.timestamp(),
        )

    def _decide(self, checkpoint: CheckpointId, reason: str) -> bool:
        stop_if_superseded(self._store, self._attempt)
        intent = Intent(
            nonce=self._surroundings.nonce(),
            checkpoint=checkpoint,
            attempt=self._attempt.number,
            reason=reason,
            decided_at=self._surroundings.timestamp(),
        )
        name = names.checkpoint_object(checkpoint, names.INTENT_SUFFIX)
        with contextlib.suppress(ObjectExistsError):  # an older attempt has just decided the same
            writing.create(self._store, name, encode(intent), surroundings=self._surroundings)
        return self._carry_out(checkpoint)

    def _carry_out(self, checkpoint: CheckpointId) -> bool:
        if not self._leases.clear(checkpoint):
            return False
        write_state_file(self._store, lines=self._lines, surroundings=self._surroundings)
        self._remove(names.checkpoint_object(checkpoint, names.COMMIT_SUFFIX))
        self._remove_all_but_intent(checkpoint)
        self._remove(names.checkpoint_object(checkpoint, names.INTENT_SUFFIX))
        return True

    def _sweep(self, line: Line) -> None:
        """Removes what earlier attempts left without a commit, and what leases nothing."""
        for checkpoint in sorted(line.uncommitted - line.retiring):
            if checkpoint.attempt < self._attempt.number:
                self._remove_all_but_intent(checkpoint)
        for name in self._store.list(names.LEASES):
            leased = names.parse_lease(name)
            if leased is not None and leased not in {*line.checkpoints, *line.void}:
                self._leases.clear(leased)

    def _remove_all_but_intent(self, checkpoint: CheckpointId) -> None:
        intent = names.checkpoint_object(checkpoint, names.INTENT_SUFFIX)
        for name in self._store.list(names.checkpoint_object(checkpoint, ".")):
            if name != intent:
                self._remove(name)

    def _remove(self, name: str) -> None:
        try:
            self._store.delete(name, generation=self._store.stat(name).generation)
        except ObjectNotFoundError:
            return  # gone already: another attempt, or this one before a crash
