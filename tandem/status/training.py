"""Findings about the trainer: whether it advances, and why not."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from tandem.status import pods, storage
from tandem.status.facts import SILENT_SECONDS, Access, AttemptFacts, Process, RunFacts
from tandem.status.findings import RESUME_SECONDS, Cause, Commands, Finding, Health
from tandem.status.words import age_text, one_line

_FIRST_STEP_SECONDS = 1800.0
_FIRST_DATA_SECONDS = 300.0
_HANG_IS_NEWS_SECONDS = 120.0
_STALE_INTERVALS = 3
_HOUR = 3600.0
_OFTEN = 3
_CLOCK_SECONDS = 60.0
_WAITING_FOR_DATA = "waiting for data"
_OF_DATA = frozenset({"RecordError", "DataEndedError", "DataError", "LabelMapError"})
_SLOWED = 3.0


def find(facts: RunFacts) -> Iterator[Finding]:
    """What is wrong with training."""
    if facts.access is None or facts.access.kind is Access.NO_RUN:
        yield from _state(facts)
        yield from _pace(facts)
        yield from _history(facts)
        yield from _clocks(facts)
    else:
        yield from pods.find_trainer(facts)


def _state(facts: RunFacts) -> Iterator[Finding]:
    if facts.outcome == "finished":
        return
    commands, trainer, attempt = Commands(facts), facts.trainer, facts.attempt
    if attempt is not None and attempt.outcome == "failed":
        yield _failed(attempt.cause, attempt.reason, commands)
        return
    has_left = trainer is not None and trainer.phase in ("failed", "preempted")
    if trainer is not None and trainer.lives and not has_left:
        yield from pods.find_killed_before(facts)
        yield from pods.find_held_back(facts)
        return
    explained = list(pods.find_trainer(facts))
    if explained:
        yield from explained
    elif trainer is not None and _is_news(trainer):
        yield from _hanging(trainer, attempt, commands)
    elif trainer is not None and trainer.phase == "failed" and trainer.trouble is not None:
        yield _failed(trainer.trouble.kind, trainer.trouble.text, commands)
    elif attempt is None:
        yield Finding(
            "no-trainer",
            Health.UNKNOWN,
            Cause.UNKNOWN,
            "no trainer has begun in this run folder"
            if facts.access is None
            else one_line(facts.access.text),
            commands.logs("trainer") if facts.cluster else commands.watch,
            "TandemTrainerNotStarted",
        )
    elif attempt.outcome == "preempted":
        yield _preempted(attempt, commands)
    elif trainer is not None or (attempt.claimed_age_seconds or 0.0) >= SILENT_SECONDS:
        yield _silent(facts, attempt, commands)


def _failed(kind: str, reason: str, commands: Commands) -> Finding:
    cause = Cause.OURS
    if storage.is_of_full_disk(reason):
        return Finding(
            "disk-full",
            Health.BROKEN,
            Cause.STORAGE,
            f"training failed, as a disk is full: {one_line(reason)}",
            commands.describe("trainer"),
            "TandemSaveFailed",
        )
    if kind in _OF_DATA:
        cause = Cause.DATA
    elif storage.is_storage(kind):
        cause = Cause.STORAGE
    elif not kind:
        cause = Cause.UNKNOWN
    code, alert = "training-failed", "TandemTrainerFailed"
    if kind in ("ConfigError", "LabelMapError", "DataError", "FineTuneError"):
        code = "bad-input"
    elif kind in ("RunConflictError", "AttemptSupersededError"):
        code, alert = "two-trainers", "TandemTwoTrainers"
    elif cause is Cause.STORAGE:
        code, alert = "save-failing", "TandemSaveFailed"
    return Finding(
        code,
        Health.BROKEN,
        cause,
        f"training failed ({kind or 'no reason recorded'}): {one_line(reason)}",
        commands.logs("trainer"),
        alert,
    )


def _is_news(process: Process) -> bool:
    return process.hang is not None and process.hang.age_seconds < _HANG_IS_NEWS_SECONDS


def _hanging(
    trainer: Process, attempt: AttemptFacts | None, commands: Commands
) -> Iterator[Finding]:
    hang = trainer.hang
    if hang is None:
        return
    first = (attempt.resumed_step if attempt else None) or 0
    is_data = hang.place == _WAITING_FOR_DATA
    patience = _FIRST_DATA_SECONDS if is_data else _FIRST_STEP_SECONDS
    if (trainer.step or 0) <= first and hang.silent_seconds < patience:
        return  # the first step is compiled and the data pipeline fills
    yield Finding(
        "trainer-hanging",
        Health.BROKEN,
        Cause.DATA if is_data else Cause.OURS,
        f"the trainer lives but its loop hangs at step {trainer.step}, {hang.place} for "
        f"{age_text(hang.silent_seconds)}"
        + (f": {one_line(hang.stack, most=160)}" if hang.stack else ""),
        commands.logs("trainer"),
        "TandemTrainStalled",
    )


def _preempted(attempt: AttemptFacts, commands: Commands) -> Finding:
    age = attempt.ended_age_seconds
    is_late = age is None or age > RESUME_SECONDS
    return Finding(
        "not-resumed",
        Health.BROKEN if is_late else Health.DEGRADED,
        Cause.CLUSTER,
        f"the trainer was asked to stop {age_text(age)} ago and has not begun again",
        commands.describe("trainer"),
        "TandemTrainStalled",
    )


def _silent(facts: RunFacts, attempt: AttemptFacts, commands: Commands) -> Finding:
    trainer = facts.trainer
    age = trainer.age_seconds if trainer else attempt.claimed_age_seconds
    step = f" at step {trainer.step}" if trainer and trainer.step is not None else ""
    trouble = trainer.trouble if trainer else None
    words = f"; its last trouble: {one_line(trouble.text)}" if trouble else ""
    kind = trouble.kind if trouble else ""
    return Finding(
        "trainer-silent",
        Health.BROKEN,
        Cause.STORAGE if storage.is_storage(kind) else Cause.UNKNOWN,
        f"the trainer was last heard {age_text(age)} ago{step}, and left no end: killed, or its "
        f"node is gone{words}",
        commands.logs("trainer"),
        "TandemTrainStalled",
    )


def _pace(facts: RunFacts) -> Iterator[Finding]:
    trainer, commands = facts.trainer, Commands(facts)
    if facts.is_over or trainer is None or not trainer.lives:
        return
    age = facts.checkpoints.newest_age_seconds
    # Until a process knows its own pace, its forerunners' counts.
    wanted = trainer.number("save_interval_seconds") or facts.checkpoints.interval_seconds
    attempt = facts.attempt
    began = attempt.claimed_age_seconds if attempt else None
    since = min((x for x in (age, began) if x is not None), default=None)
    if wanted and since is not None and since > _STALE_INTERVALS * max(wanted, 20.0):
        yield Finding(
            "checkpoint-stale",
            Health.DEGRADED,
            Cause.STORAGE if trainer.number("save_failures") else Cause.OURS,
            f"no checkpoint for {age_text(since)}, though one is due every {age_text(wanted)}",
            commands.logs("trainer"),
            "TandemCheckpointStale",
        )
    rate, median = trainer.number("steps_per_second"), trainer.number("median_step_seconds")
    if rate and median and rate * median < 1 / _SLOWED:
        yield Finding(
            "training-slow",
            Health.DEGRADED,
            Cause.UNKNOWN,
            f"{rate:.2f} steps/s of late, where {1 / median:.2f} are usual for this attempt",
            commands.logs("trainer"),
            "TandemGoodputLow",
        )


def _history(facts: RunFacts) -> Iterator[Finding]:
    commands = Commands(facts)
    stopped = [
        attempt
        for attempt in facts.attempts
        if attempt.outcome == "preempted"
        and attempt.ended_age_seconds is not None
        and attempt.ended_age_seconds < _HOUR
    ]
    if len(stopped) >= _OFTEN and not facts.is_over:
        yield Finding(
            "preempted-often",
            Health.DEGRADED,
            Cause.CLUSTER,
            f"the trainer was stopped {len(stopped)} times within an hour",
            commands.describe("trainer"),
            "TandemPreemptionStorm",
        )
    yield from _crash_loop(facts, commands)
    for before, after in zip(facts.attempts[:-1], facts.attempts[1:], strict=True):
        is_new = after.claimed_age_seconds is not None and after.claimed_age_seconds < _HOUR
        if is_new and before.outcome is None and before.owner != after.owner:
            yield Finding(
                "two-trainers",
                Health.DEGRADED,
                Cause.OURS,
                f"attempt {after.number} ({after.owner}) took over from attempt {before.number} "
                f"({before.owner}), which had not ended: do two releases train one run?",
                commands.listing,
                "TandemTwoTrainers",
            )
            return


def _crash_loop(facts: RunFacts, commands: Commands) -> Iterator[Finding]:
    """Attempts that nobody asked to stop, one after another, however much the newest one lives."""
    crashed = [
        before
        for before, after in itertools.pairwise(facts.attempts)
        if before.outcome in (None, "failed")
        and after.claimed_age_seconds is not None
        and after.claimed_age_seconds < _HOUR
    ]
    if len(crashed) < _OFTEN or facts.is_over:
        return
    newest = facts.attempts[-1].resumed_step
    has_saved = (facts.checkpoints.newest_step or 0) > (newest or 0)  # the one that lives
    is_stuck = not has_saved and all(a.resumed_step == newest for a in crashed[-_OFTEN:])
    no_further = f", and gets no further than step {newest or 0}" if is_stuck else ""
    yield Finding(
        "trainer-crash-loop",
        Health.BROKEN if is_stuck else Health.DEGRADED,
        Cause.UNKNOWN,
        f"the trainer ended {len(crashed)} times within an hour without being asked to{no_further}",
        commands.logs("trainer", previous=True),
        "TandemPreemptionStorm",
    )


def _clocks(facts: RunFacts) -> Iterator[Finding]:
    if facts.clock_behind_seconds > _CLOCK_SECONDS:
        yield Finding(
            "clock-wrong",
            Health.DEGRADED,
            Cause.CLUSTER,
            f"the store's newest object lies {age_text(facts.clock_behind_seconds)} ahead of this "
            "machine's clock: one of the two is wrong, and so is what is said of ages here",
            Commands(facts).listing,
            "TandemClockSkew",
        )
    for process in filter(None, (facts.trainer, *facts.evaluators)):
        ahead = process.clock_ahead_seconds
        if ahead is not None and abs(ahead) > _CLOCK_SECONDS:
            side = "ahead of" if ahead > 0 else "behind"
            who = "trainer" if process.name == "trainer" else f"evaluator {process.name}"
            component = "trainer" if process.name == "trainer" else "evaluator"
            yield Finding(
                "clock-wrong",
                Health.DEGRADED,
                Cause.CLUSTER,
                f"the clock of the {who} is {age_text(abs(ahead))} {side} the store's; nothing "
                "is decided by it, but its times are wrong",
                Commands(facts).describe(component),
                "TandemClockSkew",
            )
