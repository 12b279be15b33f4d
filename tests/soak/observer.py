"""Looks at a run from outside, remembers what it saw, and says which promise is broken.

A checkpoint is *sure* once it was seen on the line while that ended in the newest attempt: whoever
claims afterwards goes on from there, so it stays on the line for good. (An older attempt that was
stalled may commit after a newer one's claim; that commit may turn out void.)
"""

import json
from collections import defaultdict
from typing import NamedTuple

from google_crc32c import value as crc32c

from tests.soak import facts


class Progress(NamedTuple):
    """How far a run has come: the newest sure checkpoint, and how many scored entries there are."""

    newest: facts.Checkpoint | None
    num_scored: int


class Observer:
    """Watches one run.

    Args:
        view: the run's objects.
        eval_sets: names of the folders of their ledgers.
        tell: is told of each broken promise.
    """

    def __init__(self, view, *, eval_sets, tell):
        self._view = view
        self._eval_sets = eval_sets
        self._tell = tell
        self._lasting = {}
        self._origins = {}
        self._entries = {}
        self.sure = set()
        self.num_attempts = 0

    def look(self):
        """A quick look for what is new."""
        commits = facts.committed(self._view.names("checkpoints/"))
        number = facts.newest_attempt(self._view.names("attempts/"))
        self.num_attempts = number
        if number in {c.attempt for c in commits}:
            self.sure |= self._line(commits)
        self._read_entries(self._view.names("evaluations/"))
        num_scored = sum(entry.outcome == "scored" for entry in self._entries.values())
        return Progress(max(self.sure, default=None), num_scored)

    def check(self):
        """Holds everything that is there against what was promised."""
        self.look()
        self._check_lasting()
        names = self._view.names("checkpoints/")
        for damaged in facts.with_suffix(names, ".damaged.json"):
            self._tell(f"checkpoint {damaged} is in quarantine: {self._damage(damaged)}")
        line = self._line(facts.committed(names))
        if self.sure and max(line, default=(0, 0)) < max(self.sure):
            self._tell(f"the line ends at {max(line, default=None)}, before {max(self.sure)}")
        for checkpoint in sorted(line):
            self._check_files(checkpoint)
        self._check_state_file()
        for eval_set in self._eval_sets:
            self._check_best(eval_set)

    def entries_of(self, eval_set):
        """The entries of an eval set, by checkpoint; several of one are a broken promise."""
        found = defaultdict(list)
        for entry in self._entries.values():
            if entry.eval_set == eval_set:
                found[entry.checkpoint].append(entry)
        for checkpoint, entries in found.items():
            if len(entries) > 1:
                self._tell(f"checkpoint {checkpoint} has {len(entries)} entries in {eval_set}")
        return {checkpoint: entries[0] for checkpoint, entries in found.items()}

    def line_now(self):
        """The checkpoints on the line."""
        return self._line(facts.committed(self._view.names("checkpoints/")))

    def _line(self, commits):
        for number in {c.attempt for c in commits} - self._origins.keys():
            self._read_origin(f"attempts/{number:04d}.json")
        return facts.line_of(self._origins, commits)

    def _read_origin(self, name):
        data = self._view.get(name)
        self._origins[facts.attempt_number(name)] = facts.resumed_from(data)

    def _read_entries(self, names):
        for name in names:
            if not facts.is_entry(name) or name in self._entries:
                continue
            data = self._view.get(name)
            if data is None:
                self._tell(f"{name} was listed and is gone")
            else:
                self._entries[name] = facts.entry_of(name, data)

    def _check_lasting(self):
        """Claims, ends, commits and entries keep their bytes; only commits may go."""
        found = {
            name: fingerprint
            for prefix in ("attempts/", "evaluations/", "checkpoints/")
            for name, fingerprint in self._view.fingerprints(prefix).items()
            if prefix == "attempts/" or facts.is_entry(name) or name.endswith(".commit.json")
        }
        for name, fingerprint in found.items():
            if self._lasting.setdefault(name, fingerprint) != fingerprint:
                self._tell(f"{name} has changed from {self._lasting[name]} to {fingerprint}")
        self._read_entries(found)
        for name in self._lasting.keys() - found.keys():
            if self._view.get(name) is None:
                self._check_vanished(name)
                del self._lasting[name]

    def _check_vanished(self, name):
        if not name.endswith(".commit.json"):
            self._tell(f"{name} has vanished")
            return
        (checkpoint,) = facts.committed([name])
        if checkpoint not in self.sure:
            return
        self._read_entries(self._view.names("evaluations/"))
        for eval_set in self._eval_sets:
            if checkpoint not in self.entries_of(eval_set):
                self._tell(f"checkpoint {checkpoint} has gone without an entry in {eval_set}")

    def _is_going(self, checkpoint):
        names = self._view.names(checkpoint.object("."))
        return checkpoint in facts.with_suffix(names, ".retire.json") or (
            checkpoint not in facts.committed(names)
        )

    def _check_files(self, checkpoint):
        wrong = self._what_is_wrong_with(checkpoint)
        if wrong and not self._is_going(checkpoint):
            self._tell(f"checkpoint {checkpoint}: {wrong}")

    def _what_is_wrong_with(self, checkpoint):
        commit = self._view.get(checkpoint.object(".commit.json"))
        if commit is None:
            return "its commit has gone"
        for file in json.loads(commit)["files"]:
            data = self._view.get(checkpoint.object(file["suffix"]))
            if data is None:
                return f"{file['suffix']} is missing"
            if (len(data), crc32c(data)) != (file["size"], file["crc32c"]):
                return f"{file['suffix']} has {len(data)} bytes, crc32c {crc32c(data)}, not {file}"
        return None

    def _damage(self, checkpoint):
        return (self._view.get(checkpoint.object(".damaged.json")) or b"gone").decode()

    def _check_state_file(self):
        text = self._view.get(facts.STATE_FILE)
        for checkpoint in facts.named_in(text or b""):
            wrong = self._what_is_wrong_with(checkpoint)
            # Retiring rewrites the state file first and removes second.
            if wrong and self._view.get(facts.STATE_FILE) == text:
                self._tell(f"the state file names checkpoint {checkpoint}: {wrong}")

    def _check_best(self, eval_set):
        """The best of all entries is there: whoever was better took its place before it went."""
        best = self._best(eval_set)
        if best is None or not self._is_going(best):
            return
        self.look()
        if self._best(eval_set) == best:
            self._tell(f"checkpoint {best}, the best of {eval_set}, is gone or about to go")

    def _best(self, eval_set):
        entries = self.entries_of(eval_set).values()
        return facts.best_of(entry for entry in entries if entry.checkpoint in self.sure)
