"""What `tandem store ls` shows: facts in, something printable out. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, NamedTuple

from rich.console import (
    Console,
    ConsoleOptions,
    Group,
    JustifyMethod,
    RenderableType,
    RenderResult,
)
from rich.table import Table
from rich.text import Text

from services.ctl.store.facts import PENDING, RUNNING, CheckpointFacts, Evaluation, RunFacts
from services.ctl.store.quantities import seconds_since, size_text
from services.ctl.streams import escaped
from services.ctl.tables import short
from tandem.checkpoints.ledger import EntryOutcome
from tandem.checkpoints.policies import MAIN_METRIC, RetentionPolicy
from tandem.checkpoints.tries import MAX_TRIES
from tandem.status.words import age_text

_MAX_SET_NAME = 12
_MAX_MARK = 12


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
    parts += [Text(), _Checkpoints(facts, now=now)]
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


class _Column(NamedTuple):
    """A column of the table.

    Attributes:
        heading: its heading, in full.
        cells: one per checkpoint.
        rank: columns of a higher rank give way first where the terminal is narrow; those of rank 0
            never do.
        most: how wide it may be; None for any width.
        least: how narrow it may be, if it may wrap.
    """

    heading: str
    cells: tuple[Text, ...]
    rank: int = 0
    most: int | None = None
    least: int | None = None

    @property
    def width(self) -> int:
        """What it needs, the space before the next one included."""
        widest = max(len(self.heading), *(cell.cell_len for cell in self.cells))
        return (self.least or min(widest, self.most or widest)) + len(_GAP)


class _Checkpoints:
    """The table of checkpoints, with as many columns as the terminal has room for."""

    def __init__(self, facts: RunFacts, *, now: datetime) -> None:
        self._columns = list(_columns(facts, now=now))
        self._styles = [_style(checkpoint) for checkpoint in facts.checkpoints]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        shown = list(self._columns)
        while sum(c.width for c in shown) > options.max_width and any(c.rank for c in shown):
            shown.remove(max(shown, key=lambda column: column.rank))
        yield self._table(shown)
        hidden = [column.heading for column in self._columns if column not in shown]
        if hidden:
            yield Text(f"no room for {', '.join(hidden)}", style="dim")

    def _table(self, columns: list[_Column]) -> Table:
        table = Table(box=None, pad_edge=False, padding=(0, len(_GAP), 0, 0), header_style="bold")
        for column in columns:
            table.add_column(
                Text(column.heading),
                justify="right" if column.heading else "left",
                no_wrap=column.least is None,
                min_width=column.least,
                max_width=column.most,
                overflow="ellipsis" if column.most else "fold",
            )
        for row, style in zip(
            zip(*(c.cells for c in columns), strict=True), self._styles, strict=True
        ):
            table.add_row(*row, style=style)
        return table


_GAP = "  "


def _columns(facts: RunFacts, *, now: datetime) -> Iterator[_Column]:
    found = facts.checkpoints
    commits = [checkpoint.commit for checkpoint in found]
    ages = [age_text(seconds_since(c.committed_at, now=now)) if c else "-" for c in commits]
    num_sets = len(facts.eval_sets)
    yield _Column("checkpoint", tuple(_text(str(c.checkpoint)) for c in found))
    yield _Column("age", tuple(map(_text, ages)), rank=num_sets + 1)
    sizes = (_text(size_text(c.size) if c else "-") for c in commits)
    yield _Column("size", tuple(sizes), rank=num_sets + 2)
    for position, eval_set in enumerate(facts.eval_sets, 1):
        yield _Column(
            escaped(eval_set.name or "eval"),
            tuple(_evaluation_text(c.evaluations[eval_set], c) for c in found),
            rank=position,
            most=_MAX_SET_NAME,
        )
    marks = [escaped(", ".join(_marks(checkpoint))) for checkpoint in found]
    longest = max(len(word) for text in marks for word in (text or " ").split(" "))
    yield _Column("", tuple(map(Text, marks)), least=max(1, min(longest, _MAX_MARK)))


def _evaluation_text(evaluation: Evaluation, checkpoint: CheckpointFacts) -> Text:
    if evaluation.state == EntryOutcome.SCORED.value:
        return _text(short(evaluation.value), style="bold green" if evaluation.is_best else "")
    if evaluation.state in (PENDING, RUNNING) and not _is_on_line(checkpoint):
        return _text("-")
    tries = f" {evaluation.tries}/{MAX_TRIES}" if evaluation.tries else ""
    is_open = evaluation.state in (PENDING, RUNNING)
    return _text(evaluation.state + (tries if is_open else ""))


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
        table.add_row(_text(first), _text(second))
    return table


def _text(text: str, *, style: str = "") -> Text:
    """Text from a run folder, shown as it is and never obeyed."""
    return Text(escaped(text), style=style)


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
