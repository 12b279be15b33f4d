"""What is known of a run's checkpoints: read once, so that it can be shown or printed as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tandem.checkpoints import names
from tandem.checkpoints.attempts import Attempt, AttemptEnd
from tandem.checkpoints.bests import best_entry
from tandem.checkpoints.commits import Commit, read_commit
from tandem.checkpoints.fetching import Damage
from tandem.checkpoints.heartbeats import TRAINER, HeartbeatRecord, read_heartbeats
from tandem.checkpoints.leases import LeaseRecord, read_leases
from tandem.checkpoints.ledger import EntryOutcome, LedgerEntry, read_all
from tandem.checkpoints.lines import Line, read_line
from tandem.checkpoints.names import CheckpointId, EvalSet
from tandem.checkpoints.objects import ObjectStore
from tandem.checkpoints.pins import Pin, pinned_checkpoints, read_pins
from tandem.checkpoints.policies import MAIN_METRIC
from tandem.checkpoints.runs import Run
from tandem.errors import CheckpointDamagedError, ObjectNotFoundError

PENDING = "pending"
RUNNING = "running"


@dataclass(frozen=True)
class Evaluation:
    """What became of a checkpoint in one evaluation set.

    Attributes:
        state: an entry's outcome, or `running` (there is a lease for it), or `pending`.
        value: the main metric, where it was scored and has ground truth.
        tries: how many tries have begun.
        reasons: why it was skipped or failed.
        is_best: whether it is the best of its set.
    """

    state: str
    value: float | None = None
    tries: int = 0
    reasons: tuple[str, ...] = ()
    is_best: bool = False


@dataclass(frozen=True)
class CheckpointFacts:
    """One checkpoint.

    Attributes:
        checkpoint: its id.
        commit: None where there is none, or where it can't be read.
        is_committed: whether there is a commit.
        is_void: whether it is off the line of attempts.
        is_retiring: whether it is about to be deleted.
        is_damaged: whether a reader, or this very look, found it damaged.
        is_newest: whether it is the newest of the line.
        is_final: whether it is the last one of a finished run.
        damage: what a reader found; empty where that can't be read.
        leases: on it.
        is_pinned: whether there is a pin.
        pin: None where it can't be read.
        evaluations: by set.
    """

    checkpoint: CheckpointId
    commit: Commit | None = None
    is_committed: bool = True
    is_void: bool = False
    is_retiring: bool = False
    is_damaged: bool = False
    is_newest: bool = False
    is_final: bool = False
    damage: str = ""
    leases: tuple[LeaseRecord, ...] = ()
    is_pinned: bool = False
    pin: Pin | None = None
    evaluations: Mapping[EvalSet, Evaluation] = field(default_factory=dict)


@dataclass(frozen=True)
class RunFacts:
    """A run.

    Attributes:
        location: of its folder.
        run: its identity.
        attempt: the newest.
        end: how that ended, if it did.
        heartbeat: its trainer's last one, if any.
        line: of attempts.
        eval_sets: that its checkpoints are evaluated on.
        other_entries: how many ledger entries are of other sets, or of other data.
        checkpoints: the newest first.
    """

    location: str
    run: Run
    attempt: Attempt | None
    end: AttemptEnd | None
    heartbeat: HeartbeatRecord | None
    line: Line
    eval_sets: tuple[EvalSet, ...]
    other_entries: int
    checkpoints: tuple[CheckpointFacts, ...]


def read_run_facts(store: ObjectStore, run: Run) -> RunFacts:
    """Reads everything about a run but the bytes of its checkpoints; writes nothing."""
    line = read_line(store)
    attempt = line.newest_attempt
    listed = store.list(names.EVALUATIONS)
    entry_names = [n for n in listed if (p := names.parse_entry(n)) and p.try_number is None]
    entries = read_all(store, entry_names, LedgerEntry)
    recorded = [EvalSet(e.eval_set, e.set_digest) for e in entries.values()]
    eval_sets = (attempt.eval_sets if attempt else ()) or tuple(sorted(set(recorded)))
    beat = read_heartbeats(store).get(TRAINER)
    is_its_beat = beat is not None and attempt is not None and beat.attempt == attempt.number
    look = _Look(store, line, eval_sets, entries, frozenset(listed))
    shown = {*line.checkpoints, *line.void, *line.uncommitted, *line.retiring}
    found = [look.facts_of(checkpoint) for checkpoint in sorted(shown, reverse=True)]
    return RunFacts(
        location=store.location,
        run=run,
        attempt=attempt,
        end=line.end,
        heartbeat=beat if is_its_beat else None,
        line=line,
        eval_sets=eval_sets,
        other_entries=sum(eval_set not in eval_sets for eval_set in recorded),
        checkpoints=tuple(facts for facts in found if facts is not None),
    )


class _Look:
    """One look at all checkpoints of a run."""

    def __init__(
        self,
        store: ObjectStore,
        line: Line,
        eval_sets: tuple[EvalSet, ...],
        entries: Mapping[str, LedgerEntry],
        listed: frozenset[str],
    ) -> None:
        self._store = store
        self._line = line
        self._eval_sets = eval_sets
        self._entries = entries
        self._listed = listed
        self._leases = tuple(read_leases(store).values())
        self._pins = read_pins(store)
        self._pinned = pinned_checkpoints(store)
        self._best = {eval_set: self._best_of(eval_set) for eval_set in eval_sets}

    def facts_of(self, checkpoint: CheckpointId) -> CheckpointFacts | None:
        """A checkpoint's facts; None when it was retired meanwhile."""
        line = self._line
        is_committed = checkpoint in line.checkpoints or checkpoint in line.void
        commit, damage = None, self._damage_of(checkpoint)
        try:
            commit = read_commit(self._store, checkpoint) if is_committed else None
        except ObjectNotFoundError:
            return None
        except CheckpointDamagedError as error:
            damage = damage or str(error)
        leases = tuple(lease for lease in self._leases if lease.checkpoint == checkpoint)
        return CheckpointFacts(
            checkpoint=checkpoint,
            commit=commit,
            is_committed=is_committed,
            is_void=checkpoint in line.void,
            is_retiring=checkpoint in line.retiring,
            is_damaged=checkpoint in line.damaged or bool(damage),
            is_newest=checkpoint == line.newest,
            is_final=checkpoint == line.final,
            damage=damage,
            leases=leases,
            is_pinned=checkpoint in self._pinned,
            pin=self._pins.get(checkpoint),
            evaluations={s: self._evaluation(checkpoint, s, leases) for s in self._eval_sets},
        )

    def _evaluation(
        self, checkpoint: CheckpointId, eval_set: EvalSet, leases: tuple[LeaseRecord, ...]
    ) -> Evaluation:
        name = names.entry_name(checkpoint, eval_set)
        start = name.removesuffix("json") + "try-"
        tries = sum(other.startswith(start) for other in self._listed)
        entry = self._entries.get(name)
        if entry is None and name in self._listed:
            return Evaluation("unreadable", tries=tries)
        if entry is None:
            purpose = names.lease_name(checkpoint, eval_set.name or "eval")
            is_leased = any(names.lease_name(checkpoint, le.purpose) == purpose for le in leases)
            return Evaluation(RUNNING if is_leased else PENDING, tries=tries)
        return Evaluation(
            entry.outcome.value,
            value=entry.metrics.get(MAIN_METRIC),
            tries=tries,
            reasons=entry.reasons if entry.outcome is not EntryOutcome.SCORED else (),
            is_best=checkpoint == self._best[eval_set],
        )

    def _best_of(self, eval_set: EvalSet) -> CheckpointId | None:
        of_set = [
            entry
            for entry in self._entries.values()
            if (entry.eval_set, entry.set_digest) == eval_set
        ]
        best = best_entry(of_set, metric=MAIN_METRIC, among=self._line.readable)
        return best.checkpoint if best else None

    def _damage_of(self, checkpoint: CheckpointId) -> str:
        if checkpoint not in self._line.damaged:
            return ""
        name = names.checkpoint_object(checkpoint, names.DAMAGE_SUFFIX)
        found = read_all(self._store, [name], Damage).get(name)
        if found is None:
            return "in quarantine"
        expected = f"; committed was {found.expected}" if found.expected else ""
        return f"{found.file}: {found.found}{expected} (found by {found.found_by})"
