"""`tandem store gc`: cleans up after a trainer that has gone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from services.ctl.store.printing import print_json, print_line, say
from services.ctl.store.runs import open_run
from services.exits import Exit
from tandem.checkpoints.collecting import Collected, collect


def clean(run: str, *, dry_run: bool, lease_seconds: float, as_json: bool) -> Exit:
    """Cleans up, or says what would be done.

    Raises:
        InputError: it is no run, or its trainer lives.
    """
    store = open_run(run).store
    done = collect(store, lease_seconds=lease_seconds, dry_run=dry_run, on_wait=say)
    if as_json:
        print_json({"dry_run": dry_run} | _as_json(done))
    else:
        for line in _lines(done, dry_run=dry_run):
            print_line(line)
    return Exit.FINISHED


def _lines(done: Collected, *, dry_run: bool) -> Iterator[str]:
    retire, remove = ("would retire", "would remove") if dry_run else ("retired", "removed")
    for checkpoint, reason in done.retired:
        yield f"{retire} {checkpoint}: {reason}"
    words = {"data": "data without a commit of", "lease": "the stale lease on", "pin": "the pin of"}
    for swept in done.swept:
        yield f"{remove} {words[swept.what]} {swept.checkpoint}" + (
            f" ({swept.lease})" if swept.lease else ""
        )
    if done.state_file:
        yield f"{'would bring' if dry_run else 'brought'} checkpoints/checkpoint up to date"
    for waiting in done.waiting:
        yield f"kept {waiting.checkpoint} for now, because of {', '.join(waiting.kept_by)}"
    for left in done.left:
        yield f"left alone: {left}"
    if not any(done[1:]):
        yield "nothing to clean up"


def _as_json(done: Collected) -> dict[str, Any]:
    return {
        "attempt": done.attempt,
        "retired": [{"checkpoint": str(c), "reason": reason} for c, reason in done.retired],
        "swept": [
            {"what": s.what, "checkpoint": str(s.checkpoint), "lease": s.lease or None}
            for s in done.swept
        ],
        "state_file": done.state_file,
        "waiting": [
            {"checkpoint": str(w.checkpoint), "kept_by": list(w.kept_by)} for w in done.waiting
        ],
        "left": list(done.left),
    }
