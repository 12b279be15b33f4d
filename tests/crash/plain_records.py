"""What a store holds, read without any code of the run store: patterns, plain JSON, a few lines."""

import json
import re

_CHECKPOINT = re.compile(r"checkpoints/ckpt-(\d+)-(\d+)(\.[^/]+)")
_DATA = re.compile(r"\.index|\.data-\d{5}-of-\d{5}")
_ATTEMPT = re.compile(r"attempts/(\d+)(\.end)?\.json")
_NAMED = re.compile(r'^all_model_checkpoint_paths: "ckpt-(\d+)-(\d+)"', re.MULTILINE)

STATE_FILE = "checkpoints/checkpoint"
COMMIT, INTENT, DAMAGE = ".commit.json", ".retire.json", ".damaged.json"


def parsed(name):
    """The checkpoint (step, attempt) and the suffix that an object's name has; else None twice."""
    match = _CHECKPOINT.fullmatch(name)
    return ((int(match[1]), int(match[2])), match[3]) if match else (None, None)


def is_part(suffix):
    """Whether a suffix is that of a commit or of one of TensorFlow's files."""
    return suffix is not None and (suffix == COMMIT or _DATA.fullmatch(suffix) is not None)


def claimed_number(name):
    """The attempt that an object claims; None for other objects."""
    match = _ATTEMPT.fullmatch(name)
    return int(match[1]) if match and not match[2] else None


def name_of(checkpoint, suffix):
    step, attempt = checkpoint
    return f"checkpoints/ckpt-{step}-{attempt}{suffix}"


def leases_of(checkpoint):
    step, attempt = checkpoint
    return f"leases/ckpt-{step}-{attempt}/"


def pin_of(checkpoint):
    step, attempt = checkpoint
    return f"pins/ckpt-{step}-{attempt}.json"


def named_in(state_file):
    """The checkpoints that TensorFlow's state file names."""
    return [(int(step), int(attempt)) for step, attempt in _NAMED.findall(state_file.decode())]


class PlainRecords:
    """The objects of a store by name, and what they say."""

    def __init__(self):
        self.objects = {}

    def record(self, name):
        return json.loads(self.objects[name])

    def attempts(self):
        """What each attempt resumed from, by its number."""
        claims = {n: self.record(name) for name in self.objects if (n := claimed_number(name))}
        return {n: _checkpoint(claim["resumed_from"]) for n, claim in claims.items()}

    def ends(self):
        """The record of each attempt's end, by its number."""
        found = (name for name in self.objects if (m := _ATTEMPT.fullmatch(name)) and m[2])
        return {record["number"]: record for record in map(self.record, found)}

    def finished(self):
        """The ends that say finished, by attempt."""
        return {n: end for n, end in self.ends().items() if end["outcome"] == "finished"}

    def line_of(self, commits):
        """Those of some commits that are on the line, by step."""
        attempts = self.attempts()
        number = max({attempt for _, attempt in commits} | set(self.finished()), default=None)
        last_step = float("inf")
        found = set()
        while number is not None:
            found |= {c for c in commits if c[1] == number and c[0] <= last_step}
            last_step, number = attempts[number] or (0, None)
        return sorted(found)

    def with_suffix(self, *suffixes):
        """The checkpoints that have an object of one of some suffixes."""
        return {checkpoint for checkpoint, s in map(parsed, self.objects) if s in suffixes}

    def present(self):
        """The checkpoints whose commit is there."""
        return self.with_suffix(COMMIT)

    def closed(self):
        """The checkpoints that are in quarantine or about to go."""
        return self.with_suffix(INTENT, DAMAGE)

    def newest_sound(self):
        return max(set(self.line_of(self.present())) - self.closed(), default=None)


def _checkpoint(text):
    return tuple(map(int, text.split("-"))) if text else None
