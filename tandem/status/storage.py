"""Findings about the run folder: whether it can be reached, and whether what is in it is sound."""

from __future__ import annotations

from collections.abc import Iterator

from tandem.status.facts import Access, Process, RunFacts
from tandem.status.findings import Cause, Commands, Finding, Health
from tandem.status.words import age_text, counted, one_line

_ERROR_SHARE = 0.05
_MIN_ERRORS = 3
_SLOW_SECONDS = 2.0
_HOUR = 3600.0
_WHOLE_ERROR = 600  # what is refused says how to mend it at its end
_NO_ROOM = ("No space left", "Disk quota exceeded")
_STORE_ERRORS = frozenset(
    {"StoreError", "StoreUnavailableError", "ObjectNotFoundError", "OSError", "PermissionError"}
)

_ACCESS = {
    Access.REFUSED: ("store-refused", Health.UNKNOWN),
    Access.MISSING: ("store-missing", Health.BROKEN),
    Access.UNAVAILABLE: ("store-unavailable", Health.UNKNOWN),
    Access.SLOW: ("store-slow", Health.UNKNOWN),
}


def find(facts: RunFacts) -> Iterator[Finding]:
    """What is wrong with the store."""
    commands = Commands(facts)
    if facts.access is not None:
        yield from _inaccessible(facts, commands)
        return
    full = list(_full(facts, commands))
    yield from full
    yield from _damage(facts, commands)
    for process in filter(None, (facts.trainer, *facts.evaluators)):
        for finding in _of_process(process, commands):
            if not (full and finding.code in ("disk-full", "save-failing")):
                yield finding


def is_storage(kind: str) -> bool:
    """Whether an error of this class is the storage's."""
    return kind in _STORE_ERRORS


def is_of_full_disk(text: str) -> bool:
    """Whether an error says that there is no room."""
    return any(words in text for words in _NO_ROOM)


def _inaccessible(facts: RunFacts, commands: Commands) -> Iterator[Finding]:
    access = facts.access
    if access is None:
        return
    if access.kind is Access.DAMAGED:
        yield Finding(
            "entry-damaged",
            Health.BROKEN,
            Cause.STORAGE,
            one_line(access.text, most=_WHOLE_ERROR),
            commands.verify,
            "TandemCheckpointCorrupt",
        )
    elif access.kind in _ACCESS:
        code, health = _ACCESS[access.kind]
        yield Finding(
            code,
            health,
            Cause.STORAGE,
            f"the run folder can't be read: {one_line(access.text, most=_WHOLE_ERROR)}",
            commands.probe,
            "TandemGcsErrorFastBurn",
        )


def _full(facts: RunFacts, commands: Commands) -> Iterator[Finding]:
    room = facts.room
    if room is None or room.free_bytes >= room.needed_bytes or facts.is_over:
        return
    yield Finding(
        "disk-full",
        Health.BROKEN,
        Cause.STORAGE,
        f"the disk of the run folder is full: {room.free_bytes / 1e6:.1f} MB are free, the next "
        f"checkpoint takes {room.needed_bytes / 1e6:.1f} MB",
        commands.listing,
        "TandemSaveFailed",
    )


def _damage(facts: RunFacts, commands: Commands) -> Iterator[Finding]:
    found = facts.checkpoints
    if found.damaged:
        more = f", and {len(found.damaged) - 1} more" if len(found.damaged) > 1 else ""
        yield Finding(
            "checkpoint-damaged",
            Health.DEGRADED,
            Cause.STORAGE,
            f"a checkpoint is damaged and left out: {one_line(found.damaged[0])}{more}",
            commands.verify,
            "TandemCheckpointCorrupt",
        )
    elif found.incomplete:
        yield Finding(
            "checkpoint-damaged",
            Health.BROKEN if facts.is_over else Health.DEGRADED,
            Cause.STORAGE,
            f"the newest checkpoint, of step {found.newest_step}, lacks "
            f"{one_line(', '.join(found.incomplete))}",
            commands.verify,
            "TandemCheckpointCorrupt",
        )
    else:
        yield from _damage_of_late(facts, commands)
    final = facts.attempt.final_step if facts.attempt and facts.outcome == "finished" else None
    if final is not None and (found.newest_step or 0) < final:
        yield Finding(
            "checkpoint-damaged",
            Health.BROKEN,
            Cause.STORAGE,
            f"training finished at step {final}, but the newest checkpoint is "
            f"{'gone' if found.newest_step is None else f'of step {found.newest_step}'}",
            commands.listing,
            "TandemCheckpointCorrupt",
        )
    evaluator = facts.evaluator
    unreadable = int(evaluator.number("unreadable_entries") or 0) if evaluator else 0
    if found.unreadable or unreadable:
        first = one_line(found.unreadable[0]) if found.unreadable else "a ledger entry"
        number = max(unreadable, len(found.unreadable))
        yield Finding(
            "entry-damaged",
            Health.DEGRADED,
            Cause.STORAGE,
            f"{counted(number, 'record')} of the run can't be read: {first}",
            commands.verify,
            "TandemCheckpointCorrupt",
        )


def _damage_of_late(facts: RunFacts, commands: Commands) -> Iterator[Finding]:
    """A damaged checkpoint may be retired soon; what damaged it is still there."""
    for process in filter(None, (facts.trainer, *facts.evaluators)):
        trouble = process.trouble
        if trouble is None or trouble.kind != "CheckpointDamagedError":
            continue
        if trouble.age_seconds is None or trouble.age_seconds < _HOUR:
            yield Finding(
                "checkpoint-damaged",
                Health.DEGRADED,
                Cause.STORAGE,
                f"the {_name(process)} met damage {age_text(trouble.age_seconds)} ago: "
                f"{one_line(trouble.text)}",
                commands.verify,
                "TandemCheckpointCorrupt",
            )
            return


def _of_process(process: Process, commands: Commands) -> Iterator[Finding]:
    failures = int(process.number("save_failures") or 0)
    trouble = process.trouble
    is_full = trouble is not None and is_of_full_disk(trouble.text)
    if trouble is not None and is_full and (failures or not process.lives):
        yield Finding(
            "disk-full",
            Health.BROKEN,
            Cause.STORAGE,
            f"no room is left for the files of the {_name(process)}: {one_line(trouble.text)}",
            commands.describe(process.name if process.name == "trainer" else "evaluator"),
            "TandemSaveFailed",
        )
        return
    if failures:
        words = f": {one_line(trouble.text)}" if trouble else ""
        yield Finding(
            "save-failing",
            Health.BROKEN if failures > 1 else Health.DEGRADED,
            Cause.STORAGE,
            f"{failures} save(s) in a row failed{words}",
            commands.probe,
            "TandemSaveFailed",
        )
    if process.lives:
        yield from _use(process, commands)


def _use(process: Process, commands: Commands) -> Iterator[Finding]:
    """What a living process says of its requests in the last minutes."""
    requests, errors = process.number("store_requests"), process.number("store_errors")
    if requests and errors and errors >= _MIN_ERRORS and errors / requests >= _ERROR_SHARE:
        yield Finding(
            "store-unavailable",
            Health.DEGRADED,
            Cause.STORAGE,
            f"{errors:.0f} of the {_name(process)}'s last {requests:.0f} store requests failed",
            commands.probe,
            "TandemGcsErrorFastBurn",
        )
    slowest = process.number("store_p99_seconds")
    if slowest is not None and slowest >= _SLOW_SECONDS:
        yield Finding(
            "store-slow",
            Health.DEGRADED,
            Cause.STORAGE,
            f"the store is slow for the {_name(process)}: one request in a hundred takes "
            f"{age_text(slowest)} or more",
            commands.probe,
            "TandemGcsErrorFastBurn",
        )


def _name(process: Process) -> str:
    return "trainer" if process.name == "trainer" else f"evaluator {process.name}".rstrip()
