"""How the objects of a run are called, and what a name says.

    run.json
    attempts/0002.json  attempts/0002.end.json
    checkpoints/ckpt-1000-2.index  .data-00000-of-00001  .commit.json  .retire.json  .damaged.json
    checkpoints/checkpoint
    leases/ckpt-1000-2/PURPOSE.json
    pins/ckpt-1000-2.json
    evaluations/SET/1000-2-DIGEST.json  evaluations/SET/1000-2-DIGEST.try-1.json
    best/SET.json
    heartbeats/trainer.json  heartbeats/evaluator-NAME.json

SET is the evaluation set's name made fit for a path (`path_safe`); the set without a name, which
the Object Detection API allows, is `@unnamed`: no safe name contains an `@`.
"""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple
from urllib.parse import quote

RUN = "run.json"
ATTEMPTS = "attempts/"
CHECKPOINTS = "checkpoints/"
STATE_FILE = "checkpoints/checkpoint"
LEASES = "leases/"
PINS = "pins/"
EVALUATIONS = "evaluations/"
HEARTBEATS = "heartbeats/"

COMMIT_SUFFIX = ".commit.json"
INTENT_SUFFIX = ".retire.json"
DAMAGE_SUFFIX = ".damaged.json"

_UNNAMED = "@unnamed"
_MAX_SAFE_CHARACTERS = 100  # file systems allow 255 bytes for a name with all its suffixes

_NUMBER = "(0|[1-9][0-9]*)"
_ID = f"{_NUMBER}-{_NUMBER}"
_ATTEMPT = re.compile(r"attempts/([0-9]{4,})(\.end)?\.json")
_CHECKPOINT = re.compile(rf"checkpoints/ckpt-{_ID}(\.[A-Za-z0-9.\-]+)")
_DATA_SUFFIX = re.compile(r"\.index|\.data-[0-9]{5}-of-[0-9]{5}")
_LEASE = re.compile(rf"leases/ckpt-{_ID}/[^/]+\.json")
_PIN = re.compile(rf"pins/ckpt-{_ID}\.json")
_ENTRY = re.compile(rf"evaluations/[^/]+/{_ID}-([^-./]+)(?:\.try-{_NUMBER})?\.json")


class CheckpointId(NamedTuple):
    """A checkpoint: its step and the attempt that wrote it; ordered by step."""

    step: int
    attempt: int

    def __str__(self) -> str:
        return f"{self.step}-{self.attempt}"


class EvalSet(NamedTuple):
    """An evaluation set: its name (may be empty) and the digest of what it consists of."""

    name: str
    digest: str


class AttemptObject(NamedTuple):
    """What the name of an object below `attempts/` says."""

    number: int
    is_end: bool


class CheckpointObject(NamedTuple):
    """What the name of an object below `checkpoints/` says."""

    checkpoint: CheckpointId
    suffix: str


class EntryObject(NamedTuple):
    """What the name of an object below `evaluations/` says; the try number is None for an entry."""

    checkpoint: CheckpointId
    digest: str
    try_number: int | None


def parse_checkpoint_id(text: str) -> CheckpointId:
    """Reads `1000-2`; ValueError when it is something else."""
    match = re.fullmatch(_ID, text)
    if match is None:
        raise ValueError(f"{text!r} is not STEP-ATTEMPT, like 1000-2")
    return CheckpointId(int(match[1]), int(match[2]))


def path_safe(name: str) -> str:
    """A name as one part of a path: letters, digits, `_`, `-`, inner dots; others as `%XX`.

    Different names stay different; the empty one becomes `@unnamed`.
    """
    if not name:
        return _UNNAMED
    safe = quote(name, safe="").replace("~", "%7E")
    if safe.startswith("."):
        safe = "%2E" + safe[1:]
    if len(safe) > _MAX_SAFE_CHARACTERS:
        digest = hashlib.sha256(name.encode()).hexdigest()[:16]
        safe = f"{safe[: _MAX_SAFE_CHARACTERS - 17]}~{digest}"
    return safe


def events_folder(eval_set_name: str) -> str:
    """TensorBoard's folder of an evaluation set, as the Object Detection API calls it."""
    return f"eval_{path_safe(eval_set_name)}" if eval_set_name else "eval"


def attempt_name(number: int) -> str:
    """The object that claims an attempt."""
    return f"attempts/{number:04d}.json"


def end_name(number: int) -> str:
    """The object that says how an attempt ended."""
    return f"attempts/{number:04d}.end.json"


def checkpoint_object(checkpoint: CheckpointId, suffix: str) -> str:
    """An object of a checkpoint: its data (`.index`, ...), commit, intent or quarantine."""
    return f"checkpoints/ckpt-{checkpoint}{suffix}"


def leases_of(checkpoint: CheckpointId) -> str:
    """Prefix of the leases on a checkpoint."""
    return f"leases/ckpt-{checkpoint}/"


def lease_name(checkpoint: CheckpointId, purpose: str) -> str:
    """The lease on a checkpoint for one purpose."""
    return f"{leases_of(checkpoint)}{path_safe(purpose)}.json"


def pin_name(checkpoint: CheckpointId) -> str:
    """The pin of a checkpoint."""
    return f"{PINS}ckpt-{checkpoint}.json"


def entries_of(eval_set_name: str) -> str:
    """Prefix of an evaluation set's ledger."""
    return f"evaluations/{path_safe(eval_set_name)}/"


def entry_name(checkpoint: CheckpointId, eval_set: EvalSet) -> str:
    """The one ledger entry of a checkpoint and an evaluation set."""
    return f"{entries_of(eval_set.name)}{checkpoint}-{eval_set.digest}.json"


def try_name(checkpoint: CheckpointId, eval_set: EvalSet, number: int) -> str:
    """The record that a try (1, 2, ...) began."""
    return f"{entries_of(eval_set.name)}{checkpoint}-{eval_set.digest}.try-{number}.json"


def best_name(eval_set_name: str) -> str:
    """The projection that names the best checkpoint of an evaluation set."""
    return f"best/{path_safe(eval_set_name)}.json"


def heartbeat_name(process: str) -> str:
    """The heartbeat of a process: `trainer`, `evaluator-NAME`."""
    return f"heartbeats/{path_safe(process)}.json"


def parse_attempt_object(name: str) -> AttemptObject | None:
    """What `attempts/0002.end.json` says; None for other names."""
    match = _ATTEMPT.fullmatch(name)
    return AttemptObject(int(match[1]), match[2] is not None) if match else None


def parse_checkpoint_object(name: str) -> CheckpointObject | None:
    """What `checkpoints/ckpt-1000-2.index` says; None for other names."""
    match = _CHECKPOINT.fullmatch(name)
    if match is None:
        return None
    return CheckpointObject(CheckpointId(int(match[1]), int(match[2])), match[3])


def is_data_suffix(suffix: str) -> bool:
    """Whether a suffix is one of TensorFlow's own: `.index`, `.data-00000-of-00001`."""
    return _DATA_SUFFIX.fullmatch(suffix) is not None


def parse_lease(name: str) -> CheckpointId | None:
    """The checkpoint that a lease is on; None for other names."""
    match = _LEASE.fullmatch(name)
    return CheckpointId(int(match[1]), int(match[2])) if match else None


def parse_pin(name: str) -> CheckpointId | None:
    """The checkpoint that a pin is on; None for other names."""
    match = _PIN.fullmatch(name)
    return CheckpointId(int(match[1]), int(match[2])) if match else None


def parse_entry(name: str) -> EntryObject | None:
    """What `evaluations/SET/1000-2-DIGEST.json` (or `.try-1.json`) says; None for other names."""
    match = _ENTRY.fullmatch(name)
    if match is None:
        return None
    checkpoint = CheckpointId(int(match[1]), int(match[2]))
    return EntryObject(checkpoint, match[3], int(match[4]) if match[4] else None)
