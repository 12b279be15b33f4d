"""Findings about the evaluator: whether it keeps up, and what its numbers say."""

from __future__ import annotations

from collections.abc import Iterator

from tandem.status import pods
from tandem.status.facts import Access, Process, RunFacts
from tandem.status.findings import RESUME_SECONDS, Cause, Commands, Finding, Health
from tandem.status.words import age_text, counted, one_line

_HANG_IS_NEWS_SECONDS = 120.0
_LAG_BUDGET_SECONDS = 1800.0  # the evaluator's own default, where it says nothing
_DROP = 0.05
_MANY_PENDING = 3
_MANY_TRIES = 2
_START_SECONDS = 300.0
_DAY_SECONDS = 86_400.0
_STOPPED = "Stopped"  # the evaluator's word for how its watch ended


def find(facts: RunFacts) -> Iterator[Finding]:
    """What is wrong with evaluation."""
    if facts.access is not None and facts.access.kind is not Access.NO_RUN:
        yield from pods.find_evaluator(facts)
        return
    yield from _state(facts)
    yield from _failures(facts)
    yield from _lag(facts)
    yield from _numbers(facts)
    yield from _image(facts)


def _state(facts: RunFacts) -> Iterator[Finding]:
    commands, evaluator = Commands(facts), facts.evaluator
    pending = facts.checkpoints.num_pending
    explained = list(pods.find_evaluator(facts))
    has_left = evaluator is not None and evaluator.phase in ("failed", "done")
    if evaluator is not None and evaluator.lives and not has_left:
        yield from explained
        yield from _silent_others(facts, commands)
        return
    if not pending and (facts.is_over or facts.outcome == "preempted"):
        return
    if facts.checkpoints.newest_step is None and not explained:
        return  # nothing to do for it yet
    if explained:
        yield from explained
        return
    if evaluator is not None and _hangs(evaluator):
        yield _hanging(evaluator, commands)
    elif facts.is_over and pending:
        yield _owed(facts, commands)
    elif evaluator is None:
        newest = facts.checkpoints.newest_age_seconds
        is_early = newest is not None and newest < _START_SECONDS
        yield Finding(
            "evaluator-silent",
            Health.DEGRADED if is_early else Health.BROKEN,
            Cause.UNKNOWN,
            "no evaluator has shown life in this run folder",
            commands.describe("evaluator"),
            "TandemEvaluatorSilent",
        )
    else:
        yield _silent(evaluator, commands)


def _silent_others(facts: RunFacts, commands: Commands) -> Iterator[Finding]:
    """Of several evaluators, those that were heard today, but not of late."""
    if facts.is_over:
        return
    for one in facts.evaluators:
        has_left = one.phase in ("failed", "done")
        if not one.lives and not has_left and one.age_seconds < _DAY_SECONDS:
            yield _silent(one, commands)._replace(health=Health.DEGRADED)


def _hangs(evaluator: Process) -> bool:
    return evaluator.hang is not None and evaluator.hang.age_seconds < _HANG_IS_NEWS_SECONDS


def _hanging(evaluator: Process, commands: Commands) -> Finding:
    hang = evaluator.hang
    done, expected = evaluator.number("done"), evaluator.number("expected")
    far = f" at image {done:.0f} of {expected:.0f}" if done is not None and expected else ""
    place = f"{hang.place} for {age_text(hang.silent_seconds)}" if hang else "somewhere"
    stack = f": {one_line(hang.stack, most=160)}" if hang and hang.stack else ""
    return Finding(
        "evaluator-hanging",
        Health.BROKEN,
        Cause.OURS,
        f"the evaluator lives but its loop hangs{far}, {place}{stack}",
        commands.logs("evaluator"),
        "TandemEvalStuck",
    )


def _owed(facts: RunFacts, commands: Commands) -> Finding:
    newest, evaluator = facts.checkpoints.newest_step, facts.evaluator
    why = "no evaluator shows life"
    if evaluator is not None and evaluator.phase == "failed" and evaluator.trouble is not None:
        why = f"the evaluator failed: {one_line(evaluator.trouble.text)}"
    elif evaluator is not None and evaluator.phase == "done":
        why = "the evaluator has ended its watch (of other eval sets, or another config?)"
    return Finding(
        "final-evaluation-owed",
        Health.BROKEN,
        Cause.OURS,
        f"training has ended ({facts.outcome}), not evaluated: "
        f"{counted(facts.checkpoints.num_pending, 'checkpoint')} up to step {newest}, and {why}",
        commands.ledger,
        "TandemRunEndedWithoutFinalEval",
    )


def _silent(evaluator: Process, commands: Commands) -> Finding:
    if evaluator.phase == "done" and evaluator.facts.get("ending") == _STOPPED:
        return _not_resumed(evaluator, commands)
    trouble = evaluator.trouble
    words = f"; its last trouble: {one_line(trouble.text)}" if trouble else ""
    if evaluator.phase == "done":
        words = "; it had ended its watch, start it again"
    return Finding(
        "evaluator-silent",
        Health.BROKEN,
        Cause.OURS if evaluator.phase == "done" else Cause.UNKNOWN,
        f"the evaluator ({evaluator.name}) was last heard {age_text(evaluator.age_seconds)} ago, "
        f"{evaluator.phase}{words}",
        commands.describe("evaluator"),
        "TandemEvaluatorSilent",
    )


def _not_resumed(evaluator: Process, commands: Commands) -> Finding:
    """By a node that is drained, or by somebody who takes the whole run down."""
    is_late = evaluator.age_seconds > RESUME_SECONDS
    return Finding(
        "evaluator-silent",
        Health.BROKEN if is_late else Health.DEGRADED,
        Cause.CLUSTER,
        f"the evaluator was asked to stop {age_text(evaluator.age_seconds)} ago and has not begun "
        "again",
        commands.describe("evaluator"),
        "TandemEvaluatorSilent",
    )


def _failures(facts: RunFacts) -> Iterator[Finding]:
    commands = Commands(facts)
    for eval_set in facts.eval_sets:
        if eval_set.failed_step is not None:
            yield Finding(
                "evaluation-failing",
                Health.DEGRADED,
                Cause.UNKNOWN,
                f"step {eval_set.failed_step} was given up on {eval_set.name or 'its eval set'}: "
                f"{one_line(eval_set.failed_reason)}",
                commands.explain(eval_set.failed_step),
                "TandemEvalFailingSameCheckpoint",
            )
        elif eval_set.num_tries >= _MANY_TRIES:
            trouble = facts.evaluator.trouble if facts.evaluator else None
            words = f": {one_line(trouble.text)}" if trouble else ""
            yield Finding(
                "evaluation-failing",
                Health.DEGRADED,
                Cause.UNKNOWN,
                f"a checkpoint is in its try {eval_set.num_tries} on "
                f"{eval_set.name or 'its eval set'}{words}",
                commands.logs("evaluator"),
                "TandemEvalFailingSameCheckpoint",
            )


def _lag(facts: RunFacts) -> Iterator[Finding]:
    commands, found = Commands(facts), facts.checkpoints
    evaluator = facts.evaluator
    if evaluator is None or not evaluator.lives:
        return
    budget = evaluator.number("lag_budget_seconds") or _LAG_BUDGET_SECONDS
    oldest = found.oldest_pending_age_seconds
    takes = [s.seconds_per_evaluation for s in facts.eval_sets if s.seconds_per_evaluation]
    comes = found.interval_seconds
    is_losing = (
        not facts.is_over
        and found.num_pending >= _MANY_PENDING
        and bool(takes)
        and comes is not None
        and sum(takes) > comes
    )
    if is_losing:
        yield Finding(
            "evaluation-behind",
            Health.DEGRADED,
            Cause.OURS,
            f"{found.num_pending} checkpoints wait, and it won't catch up: an evaluation takes "
            f"{age_text(sum(takes))}, a checkpoint comes every {age_text(comes)}",
            commands.ledger,
            "TandemEvalLagHigh",
        )
    elif oldest is not None and oldest > budget:
        yield Finding(
            "evaluation-behind",
            Health.DEGRADED,
            Cause.OURS,
            f"waiting: {counted(found.num_pending, 'checkpoint')}, the oldest for "
            f"{age_text(oldest)}; "
            f"{age_text(budget)} are allowed",
            commands.ledger,
            "TandemEvalLagHigh",
        )


def _numbers(facts: RunFacts) -> Iterator[Finding]:
    for eval_set in facts.eval_sets:
        last, best = eval_set.last, eval_set.best
        if last is None or best is None or last.value is None or best.value is None:
            continue
        if best.value - last.value > _DROP:
            on = f" on {eval_set.name}" if eval_set.name else ""
            yield Finding(
                "metric-regressed",
                Health.DEGRADED,
                Cause.OURS,
                f"AP{on} is {last.value:.3f} at step {last.step}, far below the best, "
                f"{best.value:.3f} at step {best.step}",
                Commands(facts).ledger,
                "TandemMetricRegression",
            )


def _image(facts: RunFacts) -> Iterator[Finding]:
    attempt, evaluator = facts.attempt, facts.evaluator
    if attempt is None or evaluator is None or facts.is_over:
        return
    if attempt.image and evaluator.image and attempt.image != evaluator.image:
        yield Finding(
            "images-differ",
            Health.DEGRADED,
            Cause.OURS,
            f"the trainer runs {attempt.image}, the evaluator {evaluator.image}",
            Commands(facts).describe("evaluator"),
            "TandemImagesDiffer",
        )
