"""Retiring: how a checkpoint that is not held goes, without taking it from under anyone.

Only the current attempt retires, and only as the head of the line (before its first commit or
finished end its line may yet be given up for the older one's). For each checkpoint, in this order:

1. record `skipped` in every ledger that lacks an entry;
2. decide again: an evaluation that finished meanwhile may have made it the best, or it was pinned;
3. list attempts: a newer one, stop;
4. put the intent, which is never taken back;
5. look at its leases and its pin: a live or a standing one, leave it at that until the next pass;
6. state file, commit, data, intent: readers by name find no commit before data go, and the intent
   goes last, so that a crash is found again.

After a crash: again from 5 where the commit stands, from the data where it is gone. A void commit
takes the same way from 3. Data that never got a commit are swept only of attempts below the head
and of one that has ended: what the former commit later is void anyway, and the latter commits no
more, whereas a running head's own may be just being written.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import ClassVar, NamedTuple

from tandem.checkpoints import names, writing
from tandem.checkpoints.attempts import Attempt, stop_if_superseded
from tandem.checkpoints.leases import LeaseWatch
from tandem.checkpoints.ledger import (
    EntryOutcome,
    LedgerEntry,
    LedgerReader,
    ledger_sets,
    record_entry,
)
from tandem.checkpoints.lines import Line, LineReader
from tandem.checkpoints.names import CheckpointId, EvalSet
from tandem.checkpoints.objects import ObjectStore
from tandem.checkpoints.pins import is_pinned, pinned_checkpoints, unpin
from tandem.checkpoints.records import CheckpointField, Record, encode
from tandem.checkpoints.retention import Knowledge, held, to_retire
from tandem.checkpoints.state_file import write_state_file
from tandem.checkpoints.surroundings import SYSTEM, Surroundings
from tandem.errors import GenerationMismatchError, ObjectExistsError, ObjectNotFoundError


class Intent(Record):
    """That a checkpoint is about to be deleted."""

    kind: ClassVar[str] = "intent"
    checkpoint: CheckpointField
    attempt: int
    reason: str
    decided_at: str


class Swept(NamedTuple):
    """What was left over of a checkpoint.

    Attributes:
        what: `data`, `lease` or `pin`.
        checkpoint: the checkpoint.
        lease: the object of a lease.
    """

    what: str
    checkpoint: CheckpointId
    lease: str = ""


class RetiringPass(NamedTuple):
    """What a pass did: checkpoints that are gone, those that are still kept, what was swept."""

    retired: tuple[CheckpointId, ...]
    waiting: tuple[CheckpointId, ...]
    swept: tuple[Swept, ...] = ()


class Plan(NamedTuple):
    """What is to go.

    Attributes:
        under_way: checkpoints with an intent already.
        unheld: checkpoints that the policy doesn't keep.
        void: commits off the line that are not pinned.
        leased: checkpoints that only a live lease keeps.
        orphaned: checkpoints that are gone but for a live lease.
        leftovers: stale leases, and what is left of checkpoints that are gone.
    """

    under_way: tuple[CheckpointId, ...] = ()
    unheld: tuple[CheckpointId, ...] = ()
    void: tuple[CheckpointId, ...] = ()
    leased: tuple[CheckpointId, ...] = ()
    orphaned: tuple[CheckpointId, ...] = ()
    leftovers: tuple[Swept, ...] = ()


class Retirer:
    """Retires for one attempt; keep it from pass to pass, it measures how old leases are."""

    def __init__(
        self,
        store: ObjectStore,
        attempt: Attempt,
        *,
        lease_seconds: float = 60.0,
        surroundings: Surroundings = SYSTEM,
    ) -> None:
        self._store = store
        self._attempt = attempt
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
        plan = self.plan()
        done = [c for c in plan.under_way if self._carry_out(c)]
        done += [c for c in plan.unheld if self._retire(c)]
        done += [c for c in plan.void if self._decide(c, "void")]
        swept = [leftover for leftover in plan.leftovers if self._sweep(leftover)]
        waiting = sorted(self._lines.read().retiring)
        return RetiringPass(tuple(done), tuple(waiting), tuple(swept))

    def plan(self) -> Plan:
        """What is to go; writes nothing, but the leases that it sees begin to age."""
        # In this order: a pin whose checkpoint is missing from the later listing is left over.
        pinned = pinned_checkpoints(self._store)
        line = self._lines.read()
        if line.head != self._attempt.number:
            return Plan()
        leased = self._leases.live_checkpoints()
        unheld = self._unheld(line, pinned=pinned)
        there = {*line.checkpoints, *line.void, *line.retiring}
        return Plan(
            under_way=tuple(sorted(line.retiring)),
            unheld=tuple(c for c in unheld if c not in leased),
            void=tuple(c for c in line.void if c not in line.retiring | pinned),
            leased=tuple(c for c in unheld if c in leased),
            orphaned=tuple(sorted(leased - there)),
            leftovers=tuple(self._leftovers(line, pinned - there)),
        )

    def obstacles(self, checkpoint: CheckpointId) -> tuple[str, ...]:
        """The objects that keep a checkpoint which is to go: live leases, and its pin."""
        listed = self._store.list(names.leases_of(checkpoint))
        live = [name for name in listed if self._leases.look(name).is_live]
        if self._is_kept_by_pin(checkpoint):
            live.append(names.pin_name(checkpoint))
        return tuple(live)

    @property
    def _eval_sets(self) -> tuple[EvalSet, ...]:
        # Attempts of older versions don't say; then each set that was evaluated counts.
        return self._attempt.eval_sets or ledger_sets(self._store)

    def _unheld(
        self,
        line: Line,
        *,
        pinned: frozenset[CheckpointId],
        leased: frozenset[CheckpointId] = frozenset(),
    ) -> tuple[CheckpointId, ...]:
        ledgers = {eval_set: self._ledger.look(eval_set) for eval_set in self._eval_sets}
        knowledge = Knowledge(ledgers=ledgers, pinned=pinned, leased=leased)
        return to_retire(line, held(line, self._attempt.retention, knowledge))

    def _is_still_unheld(self, checkpoint: CheckpointId) -> bool:
        line, pinned = self._lines.read(), pinned_checkpoints(self._store)
        leased = self._leases.live_checkpoints()
        return checkpoint in self._unheld(line, pinned=pinned, leased=leased)

    def has_open_leases(self) -> bool:
        """Whether there are leases of which it isn't known yet that they are live or stale."""
        return any(sighting.is_open for sighting in self._leases.look_at_all().values())

    def _leftovers(self, line: Line, pinned: frozenset[CheckpointId]) -> Iterator[Swept]:
        number = self._attempt.number
        below = number + 1 if number in line.ends else number
        for checkpoint in sorted(line.uncommitted - line.retiring):
            if checkpoint.attempt < below:
                yield Swept("data", checkpoint)
        for name, sighting in self._leases.look_at_all().items():
            leased = names.parse_lease(name)
            if leased is not None and sighting.generation is not None and not sighting.is_live:
                yield Swept("lease", leased, name)
        yield from (Swept("pin", checkpoint) for checkpoint in sorted(pinned))

    def _retire(self, checkpoint: CheckpointId) -> bool:
        for eval_set in self._eval_sets:
            record_entry(
                self._store, self._skipped(checkpoint, eval_set), surroundings=self._surroundings
            )
        if not self._is_still_unheld(checkpoint):
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
        if not self._leases.clear(checkpoint) or self._is_kept_by_pin(checkpoint):
            return False
        write_state_file(self._store, lines=self._lines, surroundings=self._surroundings)
        self._remove(names.checkpoint_object(checkpoint, names.COMMIT_SUFFIX))
        self._remove_all_but_intent(checkpoint)
        self._remove(names.checkpoint_object(checkpoint, names.INTENT_SUFFIX))
        return True

    def _is_kept_by_pin(self, checkpoint: CheckpointId) -> bool:
        """Whether it is pinned and still whole; once the commit is gone, nothing can be kept."""
        commit = names.checkpoint_object(checkpoint, names.COMMIT_SUFFIX)
        return is_pinned(self._store, checkpoint) and commit in self._store.list(commit)

    def _sweep(self, leftover: Swept) -> bool:
        if leftover.what == "lease":
            return self._leases.remove_stale(leftover.lease)
        if leftover.what == "pin":
            unpin(self._store, leftover.checkpoint)
        else:
            self._remove_all_but_intent(leftover.checkpoint)
        return True

    def _remove_all_but_intent(self, checkpoint: CheckpointId) -> None:
        intent = names.checkpoint_object(checkpoint, names.INTENT_SUFFIX)
        for name in self._store.list(names.checkpoint_object(checkpoint, ".")):
            if name != intent:
                self._remove(name)

    def _remove(self, name: str) -> None:
        while True:
            try:
                self._store.delete(name, generation=self._store.generation(name))
            except GenerationMismatchError:
                continue  # a bit flipped meanwhile, or another put the same intent anew
            except ObjectNotFoundError:
                pass  # gone already: another attempt, or this one before a crash
            return
