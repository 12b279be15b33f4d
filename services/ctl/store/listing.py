"""What `tandem store ls` shows: facts in, something printable out. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from rich.console import Group, JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

from services.ctl.store.facts import PENDING, RUNNING, CheckpointFacts, Evaluation, RunFacts
from services.ctl.store.quantities import age_text, seconds_since, size_text
from services.ctl.tables import short
from tandem.checkpoints.ledger import EntryOutcome
from tandem.checkpoints.policies import MAIN_METRIC, RetentionPolicy
from tandem.checkpoints.tries import MAX_TRIES

_MAX_SET_NAME = 12


def listing_json(facts: RunFacts) -> dict[str, Any]:
    """The run as one JSON object; its keys stay."""
    return {
        "run": facts.run.run_id,
        "location": facts.location,
        "attempt": _attempt_json(facts),
        "retention": facts.attempt.retention.model_dump(mode="json") if facts.attempt else None,
        "eval_sets": [eval_set._asdict() for eval_set in facts.eval_sets],
        "newest": _text_or_none(facts.line.newest),
        "final": _text_or_none(facts.line.final),
        "checkpoints": [_checkpoint_json(checkpoint) for checkpoint in facts.checkpoints],
    }


def listing(facts: RunFacts, *, now: datetime) -> RenderableType:
    """The run for people: who trains, a table of checkpoints, then what a table can't hold."""
    parts: list[RenderableType] = [_grid(_heading(facts, now=now))]
    if not facts.checkpoints:
        return Group(*parts, Text(), Text("no checkpoint yet"))
    parts += [Text(), _table(facts, now=now)]
    notes = [note for c in facts.checkpoints for note in _notes(c, now=now)]
    if notes:
        parts += [Text(), _grid(notes, justify="right")]
    return Group(*parts)


def _heading(facts: RunFacts, *, now: datetime) -> Iterator[tuple[str, str]]:
    yield "run", f"{facts.run.run_id} in {facts.location}"
    attempt = facts.attempt
    if attempt is None:
        yield "trainer", "none has begun yet"
        return
    begun = age_text(seconds_since(attempt.claimed_at, now=now))
    origin = f", resumed from {attempt.resumed_from}" if attempt.resumed_from else ""
    yield "trainer", f"attempt {attempt.number} by {attempt.holder}, begun {begun} ago{origin}"
    yield "state", _state(facts, now=now)
    yield "keeps", _policy_text(attempt.retention)
    if facts.other_entries:
        yield "also", f"{facts.other_entries} evaluations of other sets or data: see the ledger"


def _state(facts: RunFacts, *, now: datetime) -> str:
    if facts.end is not None:
        ended = age_text(seconds_since(facts.end.ended_at, now=now))
        reason = f": {facts.end.reason}" if facts.end.reason else ""
        at = f" at step {facts.end.final_step}" if facts.end.final_step is not None else ""
        return f"{facts.end.outcome.value}{at} {ended} ago{reason}"
    beat = facts.heartbeat
    if beat is None:
        return "no end and no heartbeat"
    since = seconds_since(beat.phase_since, now=now)
    heard = None if since is None else since - beat.phase_seconds
    step = "" if beat.step is None else f" at step {beat.step}"
    return f"{beat.phase}{step}, last heard {age_text(heard)} ago"


def _policy_text(policy: RetentionPolicy) -> str:
    parts = [f"the newest {policy.max_to_keep}", "the best of each eval set"]
    parts += [
        f"the best {rule.count} by {'mAP' if rule.metric == MAIN_METRIC else rule.metric}"
        + ("" if rule.eval_set is None else f" of {rule.eval_set or '(unnamed)'}")
        for rule in policy.keep_best
    ]
    if policy.keep_every_n_steps is not None:
        parts.append(f"one every {policy.keep_every_n_steps} steps")
    return ", ".join([*parts, f"up to {policy.max_unevaluated} not yet evaluated"])


def _table(facts: RunFacts, *, now: datetime) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading in ("checkpoint", "age", "size"):
        table.add_column(heading, justify="right", no_wrap=True)
    for eval_set in facts.eval_sets:
        table.add_column(
            Text(eval_set.name or "eval"),
            justify="right",
            no_wrap=True,
            max_width=_MAX_SET_NAME,
            overflow="ellipsis",
        )
    table.add_column("", overflow="fold")
    for checkpoint in facts.checkpoints:
        commit = checkpoint.commit
        table.add_row(
            str(checkpoint.checkpoint),
            age_text(seconds_since(commit.committed_at, now=now)) if commit else "-",
            size_text(commit.size) if commit else "-",
            *(_evaluation_text(checkpoint.evaluations[s], checkpoint) for s in facts.eval_sets),
            ", ".join(_marks(checkpoint)),
            style=_style(checkpoint),
        )
    return table


def _evaluation_text(evaluation: Evaluation, checkpoint: CheckpointFacts) -> Text:
    if evaluation.state == EntryOutcome.SCORED.value:
        return Text(short(evaluation.value), style="bold green" if evaluation.is_best else "")
    if evaluation.state in (PENDING, RUNNING) and not _is_on_line(checkpoint):
        return Text("-")
    tries = f" {evaluation.tries}/{MAX_TRIES}" if evaluation.tries else ""
    is_open = evaluation.state in (PENDING, RUNNING)
    return Text(evaluation.state + (tries if is_open else ""))


def _is_on_line(checkpoint: CheckpointFacts) -> bool:
    return checkpoint.is_committed and not checkpoint.is_void


def _marks(checkpoint: CheckpointFacts) -> Iterator[str]:
    best_of = [s.name or "eval" for s, e in checkpoint.evaluations.items() if e.is_best]
    states = {
        "final": checkpoint.is_final,
        "newest": checkpoint.is_newest and not checkpoint.is_final,
        "best": bool(best_of) and len(best_of) == len(checkpoint.evaluations),
        f"best of {', '.join(best_of)}": 0 < len(best_of) < len(checkpoint.evaluations),
        "pinned": checkpoint.is_pinned,
        "leased": bool(checkpoint.leases),
        "DAMAGED": checkpoint.is_damaged,
        "retiring": checkpoint.is_retiring,
        "void": checkpoint.is_void,
        "no commit": not checkpoint.is_committed,
    }
    return (word for word, applies in states.items() if applies)


def _style(checkpoint: CheckpointFacts) -> str:
    if checkpoint.is_damaged:
        return "red"
    return "" if _is_on_line(checkpoint) and not checkpoint.is_retiring else "dim"


def _notes(checkpoint: CheckpointFacts, *, now: datetime) -> Iterator[tuple[str, str]]:
    name = str(checkpoint.checkpoint)
    for lease in checkpoint.leases:
        renewed = age_text(seconds_since(lease.renewed_at, now=now))
        yield name, f"leased for {lease.purpose} by {lease.holder}, renewed {renewed} ago"
    if checkpoint.pin is not None:
        reason = f": {checkpoint.pin.reason}" if checkpoint.pin.reason else ""
        yield name, f"pinned by {checkpoint.pin.pinned_by}{reason}"
    elif checkpoint.is_pinned:
        yield name, "pinned, by a record that can't be read"
    if checkpoint.damage:
        yield name, f"damaged: {checkpoint.damage}"
    for eval_set, evaluation in checkpoint.evaluations.items():
        if evaluation.state == EntryOutcome.FAILED.value:
            reasons = "; ".join(dict.fromkeys(evaluation.reasons))
            yield name, f"failed on {eval_set.name or 'eval'}: {reasons}"


def _grid(rows: Iterable[tuple[str, str]], *, justify: JustifyMethod = "left") -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(justify=justify, no_wrap=True)
    table.add_column(overflow="fold")
    for first, second in rows:
        table.add_row(Text(first), Text(second))
    return table


def _attempt_json(facts: RunFacts) -> dict[str, Any] | None:
    attempt, end, beat = facts.attempt, facts.end, facts.heartbeat
    if attempt is None:
        return None
    return {
        "number": attempt.number,
        "owner": attempt.owner,
        "holder": attempt.holder,
        "image": attempt.image,
        "claimed_at": attempt.claimed_at,
        "resumed_from": _text_or_none(attempt.resumed_from),
        "outcome": end.outcome.value if end else None,
        "reason": end.reason if end else None,
        "ended_at": end.ended_at if end else None,
        "phase": beat.phase if beat else None,
        "step": beat.step if beat else None,
        "phase_since": beat.phase_since if beat else None,
    }


def _checkpoint_json(checkpoint: CheckpointFacts) -> dict[str, Any]:
    commit, pin = checkpoint.commit, checkpoint.pin
    return {
        "checkpoint": str(checkpoint.checkpoint),
        "step": checkpoint.checkpoint.step,
        "attempt": checkpoint.checkpoint.attempt,
        "committed": checkpoint.is_committed,
        "committed_at": commit.committed_at if commit else None,
        "size": commit.size if commit else None,
        "newest": checkpoint.is_newest,
        "final": checkpoint.is_final,
        "void": checkpoint.is_void,
        "retiring": checkpoint.is_retiring,
        "damaged": checkpoint.is_damaged,
        "damage": checkpoint.damage or None,
        "pinned": checkpoint.is_pinned,
        "pin": pin.model_dump(include={"reason", "pinned_by", "pinned_at"}) if pin else None,
        "leases": [
            lease.model_dump(include={"purpose", "holder", "renewed_at"})
            for lease in checkpoint.leases
        ],
        "evaluations": [
            {
                "eval_set": eval_set.name,
                "state": evaluation.state,
                "value": evaluation.value,
                "tries": evaluation.tries,
                "reasons": list(evaluation.reasons),
                "best": evaluation.is_best,
            }
            for eval_set, evaluation in checkpoint.evaluations.items()
        ],
    }


def _text_or_none(value: object) -> str | None:
    return None if value is None else str(value)
