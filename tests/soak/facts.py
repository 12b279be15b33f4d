"""What the names and records of a run say, worked out without the run store's own code."""

import json
import re
from typing import NamedTuple

STATE_FILE = "checkpoints/checkpoint"

_OBJECT = re.compile(r"checkpoints/ckpt-(\d+)-(\d+)(\.[^/]+)")
_DATA = re.compile(r"\.index|\.data-\d{5}-of-\d{5}")
_ENTRY = re.compile(r"evaluations/([^/]+)/(\d+)-(\d+)-[^-./]+\.json")
_ATTEMPT = re.compile(r"attempts/(\d+)\.json")
_NAMED = re.compile(r'model_checkpoint_paths?: "ckpt-(\d+)-(\d+)"')
_AP = "DetectionBoxes_Precision/mAP"


class Checkpoint(NamedTuple):
    step: int
    attempt: int

    def __str__(self):
        return f"{self.step}-{self.attempt}"

    def object(self, suffix):
        return f"checkpoints/ckpt-{self}{suffix}"


class Entry(NamedTuple):
    """A ledger entry: its set's folder, its checkpoint, what became of it."""

    eval_set: str
    checkpoint: Checkpoint
    outcome: str
    ap: float | None


def with_suffix(names, suffix):
    """The checkpoints that have a certain object."""
    found = (_OBJECT.fullmatch(name) for name in names)
    return {Checkpoint(int(m[1]), int(m[2])) for m in found if m and m[3] == suffix}


def committed(names):
    return with_suffix(names, ".commit.json")


def with_data(names):
    found = (_OBJECT.fullmatch(name) for name in names)
    return {Checkpoint(int(m[1]), int(m[2])) for m in found if m and _DATA.fullmatch(m[3])}


def attempt_number(name):
    match = _ATTEMPT.fullmatch(name)
    return int(match[1]) if match else None


def newest_attempt(names):
    return max(filter(None, map(attempt_number, names)), default=0)


def resumed_from(data):
    """The checkpoint that an attempt's record says it went on from."""
    text = json.loads(data)["resumed_from"]
    return Checkpoint(*map(int, text.split("-"))) if text else None


def is_entry(name):
    return _ENTRY.fullmatch(name) is not None


def entry_of(name, data):
    match = _ENTRY.fullmatch(name)
    record = json.loads(data)
    checkpoint = Checkpoint(int(match[2]), int(match[3]))
    return Entry(match[1], checkpoint, record["outcome"], record["metrics"].get(_AP))


def named_in(state_file):
    """The checkpoints that TensorFlow's state file names; the newest comes first."""
    found = [Checkpoint(int(m[1]), int(m[2])) for m in _NAMED.finditer(state_file.decode())]
    return list(dict.fromkeys(found))


def line_of(origins, commits):
    """The commits that count, where no attempt has finished without one.

    Args:
        origins: by attempt, the checkpoint it went on from.
        commits: all checkpoints that have one.
    """
    number, last_step = max((c.attempt for c in commits), default=None), None
    found = set()
    while number is not None:
        found |= {
            c for c in commits if c.attempt == number and (last_step is None or c.step <= last_step)
        }
        origin = origins[number]
        number, last_step = (origin.attempt, origin.step) if origin else (None, None)
    return found


def best_of(entries):
    """The checkpoint of the highest AP, the earliest of equals."""
    scored = [(-e.ap, e.checkpoint) for e in entries if e.outcome == "scored" and e.ap is not None]
    return min(scored)[1] if scored else None
