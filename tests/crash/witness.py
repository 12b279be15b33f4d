"""Sees every operation on the store, keeps its own record of it, and says when a promise is broken.

Nothing here asks the run store's own code what is the case; see `tests.crash.plain_records`.
"""

import re
from collections import Counter
from typing import NamedTuple

from tandem.errors import GenerationMismatchError, ObjectExistsError, ObjectNotFoundError
from tests.crash.plain_records import (
    COMMIT,
    DAMAGE,
    INTENT,
    STATE_FILE,
    PlainRecords,
    claimed_number,
    is_part,
    leases_of,
    name_of,
    named_in,
    parsed,
    pin_of,
)

_REPLACEABLE = re.compile(r"checkpoints/checkpoint|leases/.*|heartbeats/.*|best/.*")


class ViolationError(Exception):
    """A promise of the run store was broken.

    Attributes:
        promise: which, in a word.
    """

    def __init__(self, promise, what):
        super().__init__(f"{promise}: {what}")
        self.promise = promise


class Committed(NamedTuple):
    """A checkpoint as it was when its commit was put."""

    by: str
    files: dict  # suffix to bytes


class HeldLease(NamedTuple):
    """A lease as the store has it, by whom and when it was put."""

    process: object
    put_at: float


class Witness:
    """What was done to one store.

    Attributes:
        records: every object as it was put.
        committed: every checkpoint that was ever committed.
        intended: every checkpoint that there was ever an intent to retire.
        damaged: the checkpoints that the test itself has damaged.
        pinned: the checkpoints whose pin was confirmed and not taken away.
        is_reopened: whether training began again after its end, the final checkpoint being damaged.
        newest_tidy_attempt: that has removed the files under way of all before it.
        seen: how often rare things took place, by what they are.
        trace: a line per operation, when asked for.
    """

    def __init__(self, schedule, *, lease_seconds, traces=False):
        self._schedule = schedule
        self._lease_seconds = lease_seconds
        self.records = PlainRecords()
        self.committed = {}
        self.intended = set()
        self.damaged = set()
        self.pinned = set()
        self.trace = [] if traces else None
        self.sound_at_claim = {}
        self.is_reopened = False
        self.newest_tidy_attempt = 0
        self.seen = Counter()
        self._leases = {}
        self._named = frozenset()
        self._flipped_at = {}
        self._looked_at = {}

    # What the store's clients tell.

    def begins(self, process, operation, name, fault):
        if operation == "get" and parsed(name)[1] == COMMIT:  # with which each fetch begins
            self._looked_at.pop(process, None)
        if self.trace is not None:
            note = f"  [{fault.value}]" if fault else ""
            self.note(f"{process.name:<14} #{process.operations:<4} {operation} {name}{note}")

    def stalls(self, process, stall):
        if self.trace is not None:
            self.note(f"{process.name:<14} stalls: {stall}")

    def note(self, text):
        if self.trace is not None:
            self.trace.append(f"{self._schedule.now:9.2f}  {text}")

    def refused(self, process, operation, name, error):
        if self.trace is not None:
            self.note(f"{process.name:<14}       -> {type(error).__name__}")
        if isinstance(error, ObjectNotFoundError) and operation in ("get", "download", "read"):
            self._missed(process, name)
        if isinstance(error, ObjectExistsError):
            self.seen["create refused"] += 1
        if isinstance(error, GenerationMismatchError):
            self.seen[f"{operation} refused"] += 1

    def looked_for_file(self, process, name, *, exists):
        self._looked_at.setdefault(process, {}).setdefault(name, self._schedule.operations)
        if not exists:
            self._missed(process, name)

    def done(self, process, operation, name, args, result):
        if operation == "delete":
            self._deleted(process, name)
        elif operation in ("create", "replace", "create_from_file"):
            data = args[0] if operation != "create_from_file" else args[0].read_bytes()
            self._put(process, name, bytes(data))

    # What readers tell.

    def fetched(self, process, checkpoint, files):
        """A reader was given these bytes (by suffix) for a checkpoint."""
        if tuple(checkpoint) not in self.committed:
            self.broken("bytes", f"{process.name} read {checkpoint}, which nobody committed")
        committed = self.committed[tuple(checkpoint)].files
        differing = {s for s in {*files, *committed} if files.get(s) != committed.get(s)}
        if any(not self._flipped_unseen(process, name_of(checkpoint, s)) for s in differing):
            self.broken("bytes", f"{process.name} read other bytes of {checkpoint}")

    def _flipped_unseen(self, process, name):
        """Whether a file that is read in place was damaged only after the reader looked at it."""
        looked_at = self._looked_at.get(process, {}).get(name)
        return looked_at is not None and looked_at <= self._flipped_at.get(name, -1)

    def gone(self, process, checkpoint):
        """A reader without a lease found a checkpoint gone, which may be only if it was retired."""
        if tuple(checkpoint) not in self.intended:
            self.broken("lost", f"{process.name} doesn't find {checkpoint}, never retired")

    def holds_live_lease(self, process, checkpoint):
        """Whether a process is the holder of a lease that nobody may take for stale yet."""
        return any(
            lease.process is process and self._schedule.now - lease.put_at < self._lease_seconds
            for name, lease in self._leases.items()
            if name.startswith(leases_of(checkpoint))
        )

    def confirmed_pin(self, checkpoint):
        """Someone was told that a checkpoint is pinned, and nobody has taken that back since."""
        if pin_of(checkpoint) in self.records.objects:
            self.pinned.add(tuple(checkpoint))

    def resumes(self, process, attempt):
        """A trainer begins with its claim: it must go on from the newest sound checkpoint."""
        expected = self.sound_at_claim[attempt.number]
        found = tuple(attempt.resumed_from) if attempt.resumed_from else None
        if found != expected:
            self.broken(
                "lost", f"attempt {attempt.number} resumes from {found}, the newest is {expected}"
            )

    def tidied(self, number):
        """An attempt has removed what earlier ones had under way."""
        self.newest_tidy_attempt = max(self.newest_tidy_attempt, number)

    def sound(self):
        """The checkpoints of the line that the test has not damaged."""
        return set(self.records.line_of(self.records.present())) - self.damaged

    def damages(self, name, data):
        """The test itself has put other bytes in the place of an object's."""
        self.records.objects[name] = data
        self._flipped_at[name] = self._schedule.operations
        self.damaged.add(parsed(name)[0])
        self.note(f"{'(damage)':<14} {name}")

    def broken(self, promise, what):
        violation = ViolationError(promise, what)
        self.note(f"VIOLATION {violation}")
        self._schedule.stop(violation)

    # What each change means.

    def _put(self, process, name, data):
        if name in self.records.objects and not _REPLACEABLE.fullmatch(name):
            self.broken("once", f"{process.name} replaced {name}")
        self.records.objects[name] = data
        checkpoint, suffix = parsed(name)
        if suffix == COMMIT:
            self._commit(process, checkpoint)
        elif suffix == INTENT:
            self._intent(checkpoint)
        elif suffix == DAMAGE:
            self._quarantine(process, checkpoint)
        elif name == STATE_FILE:
            self._named = frozenset(named_in(data))
            self._check_named()
        elif name.startswith("leases/"):
            self._lease(process, name)
        elif claimed_number(name):
            self._claim(claimed_number(name))
        elif name.startswith("evaluations/") and ".try-" not in name:
            self.seen[f"{self.records.record(name)['outcome']} entry"] += 1

    def _lease(self, process, name):
        self._check_lease(process, name)
        self._leases[name] = HeldLease(process, self._schedule.now)
        if any(name.startswith(leases_of(c)) for c in self.records.with_suffix(INTENT)):
            self.seen["lease under an intent"] += 1

    def _claim(self, number):
        self.sound_at_claim[number] = sound = self.records.newest_sound()
        finished = [end["final_step"] for end in self.records.finished().values()]
        self.is_reopened |= bool(finished) and (sound is None or sound[0] < max(finished))
        self.seen["claim from a checkpoint" if sound else "claim from none"] += 1

    def _commit(self, process, checkpoint):
        if checkpoint in self.committed:
            self.broken("once", f"{process.name} brought {checkpoint} back")
        self.committed[checkpoint] = Committed(process.name, dict(process.files_under_way))
        if checkpoint not in self.records.line_of(self.records.present()):
            self.seen["void commit"] += 1

    def _intent(self, checkpoint):
        self.intended.add(checkpoint)
        if any(name.startswith(leases_of(checkpoint)) for name in self._leases):
            self.seen["intent under a lease"] += 1
        if checkpoint not in self.committed:
            self.seen["intent for what is gone"] += 1

    def _quarantine(self, process, checkpoint):
        self.seen["quarantine"] += 1
        if checkpoint not in self.damaged:
            self.broken("lost", f"{process.name} took the sound {checkpoint} for damaged")

    def _deleted(self, process, name):
        del self.records.objects[name]
        self._check_lease(process, name)
        self._leases.pop(name, None)
        checkpoint, suffix = parsed(name)
        if is_part(suffix) and checkpoint in self.committed:
            self._check_intent(process, name, checkpoint)
        if name.startswith("evaluations/") and ".try-" not in name:
            self.broken("ledger", f"{process.name} deleted {name}")
        if name.startswith("pins/") and process.name.startswith("pinner"):
            self.pinned = {c for c in self.pinned if pin_of(c) != name}
        if checkpoint in self._named:
            self._check_named()

    def _check_intent(self, process, name, checkpoint):
        """What is on the line goes under an intent only.

        A commit that comes when its data are just being swept has been off the line from the first.
        """
        line = self.records.line_of(self.records.present() | {checkpoint})
        if checkpoint in line and checkpoint not in self.records.with_suffix(INTENT):
            self.broken("lost", f"{process.name} deleted {name} without an intent")

    def _check_named(self):
        """Plain TensorFlow finds every file of every checkpoint that the state file names."""
        for checkpoint in self._named:
            files = self.committed[checkpoint].files if checkpoint in self.committed else ()
            names = [name_of(checkpoint, suffix) for suffix in (COMMIT, *files)]
            missing = [name for name in names if name not in self.records.objects]
            if missing:
                self.broken("state file", f"it names {checkpoint}, which lacks {missing}")

    def _check_lease(self, process, name):
        """Nobody takes another's lease away, or over, before it is stale."""
        lease = self._leases.get(name)
        if lease is None or lease.process is process:
            return
        self.seen["stale lease"] += 1
        if self._schedule.now - lease.put_at < self._lease_seconds:
            self.broken("lease", f"{process.name} took {name} of {lease.process.name}")

    def _missed(self, process, name):
        checkpoint, suffix = parsed(name)
        if is_part(suffix) and self.holds_live_lease(process, checkpoint):
            self.broken("lease", f"{process.name} has a live lease, but {name} is gone")
