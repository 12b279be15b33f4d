"""`tandem store ledger`: what became of every checkpoint in every evaluation set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from services.ctl.store.printing import print_json
from services.ctl.store.runs import open_run
from services.ctl.streams import escaped
from services.ctl.tables import metrics_table
from services.exits import Exit
from tandem.checkpoints.ledger import EntryOutcome, LedgerEntry, read_ledger


def show_ledger(run: str, *, as_json: bool, console: Console) -> Exit:
    """Prints one table per eval set, then what was not scored and why.

    Raises:
        InputError: it is no run.
    """
    entries = sorted(
        read_ledger(open_run(run).store), key=lambda e: (e.eval_set, e.set_digest, e.checkpoint)
    )
    if as_json:
        print_json({"entries": [_as_json(entry) for entry in entries]})
    elif entries:
        _print_tables(entries, console)
    else:
        console.print("no checkpoint has been evaluated yet")
    return Exit.FINISHED


def _print_tables(entries: Sequence[LedgerEntry], console: Console) -> None:
    for eval_set in dict.fromkeys((entry.eval_set, entry.set_digest) for entry in entries):
        of_set = [entry for entry in entries if (entry.eval_set, entry.set_digest) == eval_set]
        console.print(Text(escaped(f"eval set {eval_set[0] or '(unnamed)'}, digest {eval_set[1]}")))
        scored = [entry for entry in of_set if entry.outcome is EntryOutcome.SCORED]
        if scored:
            rows = [(e.checkpoint.step, e.metrics) for e in scored]
            console.print(metrics_table(rows, full=console.width >= _FULL_WIDTH))
        for entry in of_set:
            if entry.outcome is not EntryOutcome.SCORED:
                reasons = "; ".join(dict.fromkeys(entry.reasons))
                line = f"{entry.checkpoint} {entry.outcome.value}: {reasons}"
                console.print(Text(escaped(line)))


_FULL_WIDTH = 80


def _as_json(entry: LedgerEntry) -> dict[str, Any]:
    fields = entry.model_dump(mode="json", exclude={"nonce"})
    return fields | {"step": entry.checkpoint.step, "attempt": entry.checkpoint.attempt}
