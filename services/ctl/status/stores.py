"""From a run folder to what the diagnosis needs of it: one listing, and a few dozen small reads."""

from __future__ import annotations

import contextlib
import itertools
import shutil
import statistics
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timezone

from services.ctl.status.snapshots import Snapshot
from tandem.checkpoints import names
from tandem.checkpoints.attempts import Attempt
from tandem.checkpoints.bests import Best, best_entry
from tandem.checkpoints.commits import Commit
from tandem.checkpoints.fetching import Damage
from tandem.checkpoints.heartbeats import TRAINER, HeartbeatRecord, watchdog_process
from tandem.checkpoints.ledger import EntryOutcome, LedgerEntry
from tandem.checkpoints.lines import Line, read_line
from tandem.checkpoints.names import CheckpointId, EvalSet
from tandem.checkpoints.policies import MAIN_METRIC
from tandem.checkpoints.records import RecordType, decode
from tandem.errors import ObjectNotFoundError, StoreError, StoreUnavailableError
from tandem.status.facts import (
    AttemptFacts,
    CheckpointFacts,
    EvalSetFacts,
    Hang,
    Process,
    Room,
    RunFacts,
    Score,
    Trouble,
)

NEWEST_ENTRIES = 12
"""Entries of each eval set that are read: for the newest numbers, the time that an evaluation takes
and what fails of late. The best one is read by its projection."""

_NEWEST_COMMITS = 6
_LEAST_ROOM_BYTES = 64 * 1024  # records, heartbeats, event files
_EVALUATOR = "evaluator-"
_FEW = 4


def read_facts(snapshot: Snapshot, *, wall_clock: Callable[[], float]) -> RunFacts:
    """What the store knows of a run.

    Raises:
        StoreError: the store failed, or what says how the attempts hang together is damaged.
        TooLateError: it didn't answer in time.
    """
    return _Look(snapshot, now=wall_clock()).facts()


class _Look:
    def __init__(self, snapshot: Snapshot, *, now: float) -> None:
        self._snapshot = snapshot
        # Ages are by the store's clock. Where this machine's is behind it, its newest word is now.
        newest = max(snapshot.times.values(), default=now)
        self._now, self._behind_seconds = max(now, newest), max(0.0, newest - now)
        self._unreadable = [] if names.RUN in snapshot.times else [f"{names.RUN} is missing"]
        wanted = [n for n in snapshot.times if n.startswith((names.ATTEMPTS, names.HEARTBEATS))]
        wanted += [n for n in snapshot.times if n.endswith(names.DAMAGE_SUFFIX)]
        wanted += [n for n in snapshot.times if n.startswith("best/")]
        commits = [n for n in snapshot.times if n.endswith(names.COMMIT_SUFFIX)]
        wanted += [max(commits, key=snapshot.times.__getitem__)] if commits else []
        snapshot.ask_for([*wanted, *self._newest_entries(snapshot.list(names.EVALUATIONS))])

    def facts(self) -> RunFacts:
        line = read_line(self._snapshot.as_store)
        attempt = line.newest_attempt
        beats = self._beats()
        trainer = beats.get(TRAINER)
        if trainer is not None and attempt is not None and trainer.attempt != attempt.number:
            trainer = None  # of an attempt before, or of one that nobody knows yet
        sets = self._sets(attempt)
        pending = {c for one in sets for c in self._pending(line, one)}
        target = trainer.facts.get("last_step") if trainer else None
        return RunFacts(
            location=self._snapshot.location,
            attempts=tuple(self._attempt(one, line) for one in line.attempts),
            trainer=self._process(TRAINER, trainer, beats) if trainer else None,
            evaluators=tuple(
                self._process(process, beat, beats)
                for process, beat in beats.items()
                if process.startswith(_EVALUATOR)
            ),
            target_step=target if isinstance(target, int) else None,
            eval_sets=tuple(self._set(line, one) for one in sets),
            checkpoints=self._checkpoints(line, pending),
            room=self._room(line),
            clock_behind_seconds=self._behind_seconds,
        )

    def _age(self, name: str) -> float | None:
        time = self._snapshot.times.get(name)
        return None if time is None else max(0.0, self._now - time)

    def _read(self, name: str, record_type: type[RecordType]) -> RecordType | None:
        """A record; None when it is gone, or noted as unreadable."""
        if name not in self._snapshot.times:
            return None
        try:
            return decode(self._snapshot.get(name).data, record_type, name=name)
        except StoreUnavailableError:
            raise
        except ObjectNotFoundError:
            return None
        except StoreError as error:
            self._unreadable.append(str(error))
            return None

    def _attempt(self, attempt: Attempt, line: Line) -> AttemptFacts:
        end = line.ends.get(attempt.number)
        return AttemptFacts(
            number=attempt.number,
            owner=attempt.owner,
            holder=attempt.holder,
            image=attempt.image,
            claimed_age_seconds=self._age(names.attempt_name(attempt.number)),
            resumed_step=attempt.resumed_from.step if attempt.resumed_from else None,
            outcome=str(end.outcome) if end else None,
            reason=end.reason if end else "",
            cause=end.cause if end else "",
            ended_age_seconds=self._age(names.end_name(attempt.number)),
            config_diff=attempt.config_diff,
            final_step=end.final_step if end else None,
        )

    def _beats(self) -> dict[str, HeartbeatRecord]:
        """By process. One that is damaged is left out: the next one overwrites it."""
        found = {}
        for name in self._snapshot.list(names.HEARTBEATS):
            beat = self._read(name, HeartbeatRecord)
            if beat is not None and name == names.heartbeat_name(beat.process):
                found[beat.process] = beat  # a copy under another name says nothing of now
        return found

    def _process(
        self, process: str, beat: HeartbeatRecord, beats: Mapping[str, HeartbeatRecord]
    ) -> Process:
        age = self._age(names.heartbeat_name(process)) or 0.0
        return Process(
            name=process.removeprefix(_EVALUATOR),
            phase=beat.phase,
            age_seconds=age,
            step=beat.step,
            phase_seconds=beat.phase_seconds + age,
            attempt=beat.attempt,
            clock_ahead_seconds=self._clock_ahead(beat, names.heartbeat_name(process)),
            image=str(beat.facts.get("image") or ""),
            facts=beat.facts,
            hang=self._hang(beats.get(watchdog_process(process)), beat),
            trouble=self._trouble(beat, age),
        )

    def _clock_ahead(self, beat: HeartbeatRecord, name: str) -> float | None:
        said, put = _seconds(beat.facts.get("beat_at")), self._snapshot.times.get(name)
        return None if said is None or put is None else said - put

    def _hang(self, told: HeartbeatRecord | None, beat: HeartbeatRecord) -> Hang | None:
        if told is None or told.phase != "hanging" or told.attempt != beat.attempt:
            return None
        age = self._age(names.heartbeat_name(told.process)) or 0.0
        silent = told.facts.get("silent_seconds")
        return Hang(
            place=str(told.facts.get("at") or told.phase),
            silent_seconds=age + (float(silent) if isinstance(silent, int | float) else 0.0),
            age_seconds=age,
            stack=str(told.facts.get("stack") or ""),
        )

    def _trouble(self, beat: HeartbeatRecord, age: float) -> Trouble | None:
        text = beat.facts.get("last_error")
        if not text:
            return None
        when, said = _seconds(beat.facts.get("last_error_at")), _seconds(beat.facts.get("beat_at"))
        since = age + said - when if when is not None and said is not None else None
        return Trouble(str(beat.facts.get("last_error_kind") or ""), str(text), since)

    def _sets(self, attempt: Attempt | None) -> tuple[EvalSet, ...]:
        if attempt is not None and attempt.eval_sets:
            return attempt.eval_sets
        entries = filter(None, (self._read(name, LedgerEntry) for name in self._newest_entries()))
        return tuple(sorted({EvalSet(entry.eval_set, entry.set_digest) for entry in entries}))

    def _newest_entries(self, listed: Iterable[str] | None = None) -> list[str]:
        """Names of the newest entries of each set and digest, the newest first."""
        by_set: dict[tuple[str, str], list[tuple[CheckpointId, str]]] = {}
        for name in self._snapshot.list(names.EVALUATIONS) if listed is None else listed:
            parsed = names.parse_entry(name)
            if parsed is not None and parsed.try_number is None:
                key = (name.split("/")[1], parsed.digest)
                by_set.setdefault(key, []).append((parsed.checkpoint, name))
        return [
            name
            for entries in by_set.values()
            for _, name in sorted(entries, reverse=True)[:NEWEST_ENTRIES]
        ]

    def _pending(self, line: Line, eval_set: EvalSet) -> list[CheckpointId]:
        return [
            c
            for c in line.checkpoints
            if c not in line.retiring and names.entry_name(c, eval_set) not in self._snapshot.times
        ]

    def _set(self, line: Line, eval_set: EvalSet) -> EvalSetFacts:
        prefix = names.entries_of(eval_set.name)
        mine = self._newest_entries(
            n
            for n in self._snapshot.list(prefix)
            if (p := names.parse_entry(n)) and p.digest == eval_set.digest
        )
        entries = [entry for name in mine if (entry := self._read(name, LedgerEntry))]
        scored = [entry for entry in entries if entry.outcome is EntryOutcome.SCORED]
        done = [entry for entry in entries if entry.outcome is not EntryOutcome.SKIPPED]
        failed = done[0] if done and done[0].outcome is EntryOutcome.FAILED else None
        pending = self._pending(line, eval_set)
        times = [e.total_seconds for e in scored if e.total_seconds is not None]
        return EvalSetFacts(
            name=eval_set.name,
            num_pending=len(pending),
            last=self._score(scored[0], line, eval_set) if scored else None,
            best=self._best(scored, line, eval_set),
            failed_step=failed.checkpoint.step if failed else None,
            failed_reason=failed.reasons[-1] if failed and failed.reasons else "",
            num_tries=max((self._tries(c, eval_set) for c in pending), default=0),
            seconds_per_evaluation=_usual(times),
        )

    def _tries(self, checkpoint: CheckpointId, eval_set: EvalSet) -> int:
        start = names.entry_name(checkpoint, eval_set).removesuffix("json") + "try-"
        return sum(name.startswith(start) for name in self._snapshot.times)

    def _score(self, entry: LedgerEntry, line: Line, eval_set: EvalSet) -> Score:
        return Score(
            step=entry.checkpoint.step,
            value=entry.metrics.get(MAIN_METRIC),
            age_seconds=self._age(names.entry_name(entry.checkpoint, eval_set)),
            is_on_disk=entry.checkpoint in line.readable,
        )

    def _best(self, scored: list[LedgerEntry], line: Line, eval_set: EvalSet) -> Score | None:
        """By the projection, or by the newest entries where one of them is better or it is gone."""
        newest = best_entry(scored, metric=MAIN_METRIC, among=line.readable)
        found = self._score(newest, line, eval_set) if newest else None
        best = self._read(names.best_name(eval_set.name), Best)
        is_of_set = best is not None and best.set_digest == eval_set.digest
        if best is None or not is_of_set or best.metric != MAIN_METRIC:
            return found
        if found is not None and found.value is not None and found.value >= best.value:
            return found
        age = self._age(names.entry_name(best.checkpoint, eval_set))
        return Score(best.checkpoint.step, best.value, age, best.checkpoint in line.readable)

    def _checkpoints(self, line: Line, pending: set[CheckpointId]) -> CheckpointFacts:
        ages = [age for c in line.checkpoints if (age := self._commit_age(c)) is not None]
        newest = ages[-_NEWEST_COMMITS:]
        gaps = [before - after for before, after in itertools.pairwise(newest)]
        waiting = [age for c in pending if (age := self._commit_age(c)) is not None]
        incomplete = self._lacking(line.newest) if line.newest else []
        return CheckpointFacts(
            newest_step=line.newest.step if line.newest else None,
            newest_age_seconds=self._commit_age(line.newest) if line.newest else None,
            interval_seconds=statistics.median(gaps) if gaps else None,
            num_pending=len(pending),
            oldest_pending_age_seconds=max(waiting, default=None),
            damaged=tuple(self._damage(c) for c in sorted(line.damaged)),
            unreadable=tuple(self._unreadable),
            incomplete=tuple(incomplete),
        )

    def _lacking(self, checkpoint: CheckpointId) -> list[str]:
        """Files of a commit that aren't there; a commit that can't be read is noted as such."""
        name = names.checkpoint_object(checkpoint, names.COMMIT_SUFFIX)
        commit = self._read(name, Commit)
        if commit is None:
            return []
        files = [names.checkpoint_object(checkpoint, file.suffix) for file in commit.files]
        return [file for file in files if not self._snapshot.has(file)]

    def _room(self, line: Line) -> Room | None:
        run = self._snapshot.local_path(names.RUN)
        if run is None:
            return None
        needed = _LEAST_ROOM_BYTES
        if line.newest is not None:
            start = names.checkpoint_object(line.newest, ".")
            files = [self._snapshot.local_path(name) for name in self._snapshot.list(start)]
            with contextlib.suppress(FileNotFoundError):  # retired meanwhile
                needed += sum(file.stat().st_size for file in files if file is not None)
        return Room(free_bytes=shutil.disk_usage(run.parent).free, needed_bytes=needed)

    def _commit_age(self, checkpoint: CheckpointId) -> float | None:
        return self._age(names.checkpoint_object(checkpoint, names.COMMIT_SUFFIX))

    def _damage(self, checkpoint: CheckpointId) -> str:
        name = names.checkpoint_object(checkpoint, names.DAMAGE_SUFFIX)
        damage = self._read(name, Damage)
        return f"{damage.file}: {damage.found}" if damage else f"{checkpoint}, in quarantine"


def _usual(seconds: list[float]) -> float | None:
    """The median; of a few the least, as the first evaluation of a process compiles."""
    if len(seconds) < _FEW:
        return min(seconds, default=None)
    return statistics.median(seconds)


def _seconds(timestamp: object) -> float | None:
    """Seconds since 1970 of a record's timestamp."""
    try:
        moment = datetime.strptime(f"{timestamp}", "%Y-%m-%dT%H:%M:%SZ").replace(
            tzinfo=timezone.utc
        )
    except ValueError:
        return None
    return moment.timestamp()
