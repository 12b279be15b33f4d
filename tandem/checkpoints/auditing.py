"""Verifying a whole run: every byte of every object against everything that is known of it.

- data: size and crc32c of the bytes read, against the commit and against the store's own word;
- records: their own checksum, and that they say what their name says;
- TensorFlow's state file: that it names only checkpoints that can be read;
- ledger entries: against the commit of their checkpoint, and that its attempt exists;
- objects that are neither a run's nor TensorBoard's;
- in a local folder: folders, pipes and dead links where an object should be.

It writes nothing, and others may write meanwhile: an object that vanishes is no finding, unless the
commit that needs it stands, and each finding is looked at again before it is told. The state file
may name what has an intent: it is brought up to date once no reader is left, just before the commit
goes, and until then plain TensorFlow reads the checkpoint whole. Void checkpoints and those that
are being retired are verified as well: their commit goes before their data do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from tandem.checkpoints import names, writing
from tandem.checkpoints.checksums import Summary, Summing
from tandem.checkpoints.commits import Commit
from tandem.checkpoints.contents import name_of, record_type_of
from tandem.checkpoints.fetching import Damage
from tandem.checkpoints.ledger import LedgerEntry
from tandem.checkpoints.lines import checkpoint_listing, read_line
from tandem.checkpoints.names import CheckpointId
from tandem.checkpoints.objects import ObjectStore, StoredObject
from tandem.checkpoints.oddities import oddities
from tandem.checkpoints.records import Record, RecordType, decode
from tandem.checkpoints.state_file import paths_named
from tandem.errors import ObjectNotFoundError, StoreError, StoreUnavailableError

_PIECE_BYTES = 16 << 20
_NOT_THE_STORES = re.compile(r"(train|eval|eval_[^/]+|export|logs)/.+|pipeline\.config")
_STATE_FILE_TRIES = 5

_MISSING = "it is missing"

_BRING_BACK = "bring it back from a copy"
_OF_DATA = "bring it back from a copy; until then readers skip this checkpoint"
_MOVE_AWAY = "move it out of the run folder"
_ADVICE = {
    "commit": _OF_DATA,
    "evaluation": "delete it, and the checkpoint is evaluated again",
    "try": "delete it, and the try doesn't count",
    "best": "delete it: the evaluator derives it from the ledger",
    "heartbeat": "delete it: the process writes it anew",
    "lease": "delete it when its reader has gone",
    "pin": "delete it, and pin the checkpoint again",
    "intent": "leave it: retiring looks at its name only",
    "damage": "leave it: readers look at its name only",
}


class Finding(NamedTuple):
    """Something that is not as it should be.

    Attributes:
        object: its name.
        expected: what it should be.
        found: what it is.
        advice: what to do.
    """

    object: str
    expected: str
    found: str
    advice: str


@dataclass(frozen=True)
class Audit:
    """What was verified.

    Attributes:
        findings: what is wrong.
        num_checkpoints: how many commits there are.
        num_objects: how many objects were read.
        num_bytes: how many bytes were read.
        uncommitted: checkpoints with data but without a commit, which may be just being written.
    """

    findings: tuple[Finding, ...]
    num_checkpoints: int
    num_objects: int
    num_bytes: int
    uncommitted: tuple[CheckpointId, ...]


class Progress(NamedTuple):
    """How far an audit is."""

    num_objects: int
    of_objects: int
    num_bytes: int


def audit(store: ObjectStore, *, on_progress: Callable[[Progress], None] = lambda _: None) -> Audit:
    """Verifies a run.

    Raises:
        RunConflictError: a newer version of Tandem wrote to it.
    """
    return _Auditor(store, on_progress).audit()


class _Auditor:
    def __init__(self, store: ObjectStore, on_progress: Callable[[Progress], None]) -> None:
        self._store = store
        self._on_progress = on_progress
        self._listed: list[str] = []
        self._num_objects = 0
        self._num_bytes = 0
        self._records: dict[str, Record] = {}
        self._findings: list[Finding] = []
        self._odd: dict[str, str] = {}

    def audit(self) -> Audit:
        self._listed = self._store.list("")
        found = oddities(self._store, self._listed)
        self._odd = {n: what for n, what in found.items() if not _NOT_THE_STORES.fullmatch(n)}
        self._findings += [
            Finding(name, "an object of this run", what, _MOVE_AWAY)
            for name, what in self._odd.items()
        ]
        for name in self._listed:
            if not _is_data(name):
                self._findings += self._verify_object(name)
                self._count()
        commits = {c.checkpoint: c for c in self._of_type(Commit).values()}
        for checkpoint in sorted(commits):
            self._findings += self._verify_data(commits[checkpoint])
        self._findings += self._verify_quarantines()
        self._findings += self._verify_attempts()
        self._findings += self._verify_ledger(commits)
        self._findings += self._verify_state_file()
        listing = checkpoint_listing(self._listed)
        return Audit(
            findings=tuple(sorted(filter(self._still_holds, self._findings))),
            num_checkpoints=len(listing.committed),
            num_objects=self._num_objects,
            num_bytes=self._num_bytes,
            uncommitted=tuple(sorted(listing.with_data - listing.committed)),
        )

    def _still_holds(self, finding: Finding) -> bool:
        """Whether what was found may be wrong even now: what a retirer took away is not."""
        name = finding.object
        if name in self._odd:
            return True
        part = names.parse_checkpoint_object(name)
        if part is not None and names.is_data_suffix(part.suffix):
            return self._still_stands(part.checkpoint)
        return (finding.found == _MISSING) != (name in self._store.list(name))

    def _count(self) -> None:
        self._num_objects += 1
        self._tell()

    def _tell(self) -> None:
        self._on_progress(Progress(self._num_objects, len(self._listed), self._num_bytes))

    def _of_type(self, record_type: type[RecordType]) -> dict[str, RecordType]:
        return {n: r for n, r in self._records.items() if isinstance(r, record_type)}

    def _verify_object(self, name: str) -> Iterator[Finding]:
        if name == names.STATE_FILE or _NOT_THE_STORES.fullmatch(name) or name in self._odd:
            return
        record_type = record_type_of(name)
        if record_type is None:
            yield Finding(name, "an object of this run", "one of something else", _MOVE_AWAY)
            return
        advice = _ADVICE.get(record_type.kind, _BRING_BACK)
        try:
            stored = writing.find(self._store, name)
            if stored is None:
                return  # retired, released or withdrawn meanwhile
            self._num_bytes += len(stored.data)
            record = decode(stored.data, record_type, name=name)
        except StoreUnavailableError:
            raise
        except (StoreError, RecursionError) as error:
            yield Finding(name, f"a record of kind {record_type.kind}", str(error), advice)
        else:
            if name_of(record) != name:
                yield Finding(
                    name, "what its name says", f"what {name_of(record)} is to say", advice
                )
            else:
                self._records[name] = record

    def _verify_data(self, commit: Commit) -> Iterator[Finding]:
        for file in commit.files:
            name = names.checkpoint_object(commit.checkpoint, file.suffix)
            expected = _described(file.size, file.crc32c)
            try:
                if name in self._odd:
                    continue
                found = self._sum(name)
                own = self._store.stat(name) if self._store.local_path(name) is None else None
            except StoreUnavailableError:
                raise
            except ObjectNotFoundError:
                if self._still_stands(commit.checkpoint):
                    yield Finding(name, expected, _MISSING, _OF_DATA)
                continue
            except StoreError as error:
                yield Finding(name, expected, f"it can't be read: {error}", _OF_DATA)
                continue
            finally:
                self._count()
            if (found.size, found.crc32c) != (file.size, file.crc32c):
                read = _described(found.size, found.crc32c)
                yield Finding(name, expected, read, _OF_DATA)
            elif own is not None and (own.size, own.crc32c) != (file.size, file.crc32c):
                says = f"{_described(own.size, own.crc32c)} by the store's own account"
                yield Finding(name, expected, says, _OF_DATA)
        yield from self._strange_data(commit)

    def _strange_data(self, commit: Commit) -> Iterator[Finding]:
        committed = {names.checkpoint_object(commit.checkpoint, f.suffix) for f in commit.files}
        start = names.checkpoint_object(commit.checkpoint, ".")
        for name in self._listed:
            if name.startswith(start) and _is_data(name) and name not in committed:
                yield Finding(name, "no such file, by the commit", "it is there", _MOVE_AWAY)

    def _sum(self, name: str) -> Summary:
        summing, start = Summing(), 0
        while True:
            piece = self._store.read(name, start=start, size=_PIECE_BYTES)
            summing.add(piece)
            start += len(piece)
            self._num_bytes += len(piece)
            self._tell()
            if len(piece) < _PIECE_BYTES:
                return summing.summary()

    def _still_stands(self, checkpoint: CheckpointId) -> bool:
        commit = names.checkpoint_object(checkpoint, names.COMMIT_SUFFIX)
        return commit in self._store.list(commit)

    def _verify_attempts(self) -> Iterator[Finding]:
        parsed = [p for n in self._listed if (p := names.parse_attempt_object(n)) is not None]
        claimed = {p.number for p in parsed if not p.is_end}
        needed = {p.number for p in parsed} | set(range(1, max(claimed, default=0)))
        needed |= {c.attempt for c in checkpoint_listing(self._listed).committed}
        claims = {names.attempt_name(number): "the claim of an attempt" for number in needed}
        for name, expected in ({names.RUN: "the run's identity"} | claims).items():
            # What isn't there now either was not just created after the listing.
            if name not in {*self._listed, *self._odd} and name not in self._store.list(name):
                yield Finding(name, expected, _MISSING, _BRING_BACK)

    def _verify_ledger(self, commits: Mapping[CheckpointId, Commit]) -> Iterator[Finding]:
        for name, entry in self._of_type(LedgerEntry).items():
            commit = commits.get(entry.checkpoint)
            if commit is None or entry.samples_seen is None:
                continue  # retired, or skipped or failed without a look into it
            expected, found = _origin(commit), _origin(entry)
            if expected != found:
                yield Finding(name, f"{expected}, by the commit", found, _ADVICE["evaluation"])

    def _verify_quarantines(self) -> Iterator[Finding]:
        wrong = {finding.object for finding in self._findings}
        for name, damage in self._of_type(Damage).items():
            start = names.checkpoint_object(damage.checkpoint, ".")
            if not any(other.startswith(start) for other in wrong) and self._still_stands(
                damage.checkpoint
            ):
                yield Finding(
                    name,
                    f"damage of {damage.file}",
                    "in quarantine, but all its bytes are those committed",
                    "delete this object, and the checkpoint is used again",
                )

    def _verify_state_file(self) -> Iterator[Finding]:
        for _ in range(_STATE_FILE_TRIES):
            before = self._state_file()
            readable = self._readable()
            if before is None or readable is None:
                return
            after = self._state_file()
            if after is None or after.stat.generation != before.stat.generation:
                continue  # it was written meanwhile: look again
            for path in paths_named(before.data.decode(errors="replace")):
                if path not in readable:
                    yield Finding(
                        names.STATE_FILE,
                        "only checkpoints that can be read",
                        f"it names {path}",
                        "run `tandem store gc`, or start the trainer again: it is derived",
                    )
            return

    def _state_file(self) -> StoredObject | None:
        return (
            None if names.STATE_FILE in self._odd else writing.find(self._store, names.STATE_FILE)
        )

    def _readable(self) -> set[str] | None:
        """Prefixes of what plain TensorFlow can read whole; None where the line can't be known."""
        if any(map(names.parse_attempt_object, self._odd)):
            return None
        try:
            line = read_line(self._store)
        except StoreUnavailableError:
            raise
        except (StoreError, RecursionError):
            return None  # a finding of its own
        return {
            f"ckpt-{checkpoint}"
            for checkpoint in line.checkpoints
            if checkpoint not in line.damaged
        }


def _is_data(name: str) -> bool:
    parsed = names.parse_checkpoint_object(name)
    return parsed is not None and names.is_data_suffix(parsed.suffix)


def _described(size: int, crc32c: int) -> str:
    return f"{size} bytes, crc32c {crc32c:08x}"


def _origin(record: Commit | LedgerEntry) -> str:
    return f"config {record.config_digest}, {record.samples_seen} samples"
