"""A run's status as one JSON object, and as a screen."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table
from rich.text import Text

from services.ctl.status.lines import lines_about
from services.ctl.streams import escaped
from tandem.status.facts import RunFacts
from tandem.status.findings import Health
from tandem.status.verdicts import Verdict
from tandem.status.words import age_text

SCHEMA = 1
RUNBOOK = "docs/runbook.md"

_INDENT = 13  # of what stands beside the labels

_STYLES = {
    Health.BROKEN: "bold white on red",
    Health.UNKNOWN: "bold black on magenta",
    Health.DEGRADED: "bold black on yellow",
    Health.HEALTHY: "bold black on green",
}


def runbook(alert: str) -> str:
    """Where the runbook says more about an alert."""
    return f"{RUNBOOK}#{alert.lower()}" if alert else RUNBOOK


def as_json(facts: RunFacts, verdict: Verdict) -> dict[str, Any]:
    """Everything; keys stay as long as `schema` does."""
    findings = [
        {
            "code": finding.code,
            "health": finding.health.value,
            "cause": finding.cause.value,
            "text": finding.text,
            "next": finding.next_command,
            "runbook": runbook(finding.alert),
        }
        for finding in verdict.findings
    ]
    facts_json = asdict(facts)
    if facts.access is not None:
        facts_json["access"] = {"kind": facts.access.kind.value, "text": facts.access.text}
    return {
        "schema": SCHEMA,
        "run": facts.location,
        "health": verdict.health.value,
        "cause": verdict.cause.value if verdict.cause else None,
        "text": verdict.text,
        "findings": findings,
        "next": verdict.next_command,
        "runbook": runbook(verdict.alert),
        "lines": {line.label: line.text for line in lines_about(facts)},
        "facts": facts_json,
    }


def screen(facts: RunFacts, verdict: Verdict, *, width: int | None = None) -> list[Text]:
    """The verdict, the twelve answers, and what to do now; a line each.

    Args:
        facts: of the run.
        verdict: on it.
        width: that longer lines are broken at, to go on below their beginning; None keeps them.
            The next command stays whole in any case.
    """
    cause = f" ({verdict.cause.value})" if verdict.cause else ""
    name = facts.location
    if facts.cluster is not None:
        name = f"{facts.cluster.namespace}/{facts.cluster.release}  {facts.location}"
    head = Text()
    head.append(f" {verdict.health.value.upper()}{cause} ", style=_STYLES[verdict.health])
    head.append(f" {escaped(verdict.text)}")
    shown = [head, Text(escaped(name), style="dim")]
    shown += [
        _line(
            "also",
            f"{finding.health.value} ({finding.cause.value}): {finding.text}",
            "yellow",
            width=width,
        )
        for finding in verdict.findings[1:]
    ]
    shown.append(Text())
    shown += [_line(label, text, width=width) for label, text in lines_about(facts)]
    shown.append(Text())
    shown.append(_line("next", verdict.next_command, "bold"))
    shown.append(_line("runbook", runbook(verdict.alert)))
    return shown


def table(rows: Sequence[tuple[str, RunFacts, Verdict]]) -> Table:
    """Several runs, the worst first."""
    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading in ("run", "is", "because of", "step", "ckpt", "AP", "lag", "finding"):
        right = heading in ("step", "ckpt", "AP", "lag")
        shown.add_column(
            heading, justify="right" if right else "left", no_wrap=heading != "finding"
        )
    for name, facts, verdict in rows:
        style = {Health.BROKEN: "red", Health.UNKNOWN: "magenta", Health.DEGRADED: "yellow"}
        shown.add_row(
            Text(escaped(name)),
            Text(verdict.health.value, style=style.get(verdict.health, "green")),
            verdict.cause.value if verdict.cause else "-",
            _step(facts),
            age_text(facts.checkpoints.newest_age_seconds),
            _metric(facts),
            str(facts.checkpoints.num_pending) if facts.access is None else "?",
            Text(escaped(verdict.text)),
        )
    return shown


def _line(label: str, text: str, style: str = "", *, width: int | None = None) -> Text:
    line = Text(f"{label + ':':<{_INDENT}}", style="dim")
    room = max(_INDENT, width - _INDENT) if width else len(text) + 1
    pieces = textwrap.wrap(escaped(text), room, break_on_hyphens=False) or [""]
    line.append(f"\n{' ' * _INDENT}".join(pieces), style=style)
    return line


def _step(facts: RunFacts) -> str:
    step = facts.trainer.step if facts.trainer else facts.checkpoints.newest_step
    if step is None:
        return "-"
    return f"{100 * step / facts.target_step:.0f} %" if facts.target_step else f"{step:,}"


def _metric(facts: RunFacts) -> str:
    values = [s.last.value for s in facts.eval_sets if s.last and s.last.value is not None]
    return f"{values[0]:.3f}" if values else "-"
