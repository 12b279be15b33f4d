"""`tandem ledger`: the COCO numbers of every checkpoint that was evaluated."""

from __future__ import annotations

from rich.console import Console

from services.ctl.tables import metrics_table
from services.exits import Exit
from tandem.checkpoints.ledger import EntryOutcome, read_ledger
from tandem.checkpoints.opening import open_store
from tandem.errors import InputError


def show_ledger(run: str, console: Console) -> Exit:
    """Prints one table per eval set, then what was not scored and why.

    Raises:
        InputError: the run has no ledger.
    """
    entries = sorted(
        read_ledger(open_store(run)), key=lambda e: (e.eval_set, e.set_digest, e.checkpoint)
    )
    if not entries:
        raise InputError(f"{run} has no evaluations yet: is it a run folder, and did one finish?")
    for eval_set in dict.fromkeys((entry.eval_set, entry.set_digest) for entry in entries):
        of_set = [entry for entry in entries if (entry.eval_set, entry.set_digest) == eval_set]
        console.print(f"eval set {eval_set[0] or '(unnamed)'}, digest {eval_set[1]}")
        scored = [entry for entry in of_set if entry.outcome is EntryOutcome.SCORED]
        console.print(metrics_table([(e.checkpoint.step, e.metrics) for e in scored]))
        for entry in of_set:
            if entry.outcome is not EntryOutcome.SCORED:
                reasons = "; ".join(entry.reasons)
                console.print(f"{entry.checkpoint} {entry.outcome.value}: {reasons}", markup=False)
    return Exit.FINISHED
