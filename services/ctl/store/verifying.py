"""`tandem store verify`: re-reads every byte of a run."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from services.ctl.store.printing import print_json, print_line
from services.ctl.store.quantities import size_text
from services.ctl.store.runs import open_for_verifying
from services.exits import Exit
from tandem.checkpoints.auditing import Audit, Progress, audit

_SAY_EVERY_SECONDS = 5.0


def verify(run: str, *, as_json: bool) -> Exit:
    """Verifies a run and prints a line per finding.

    Raises:
        InputError: it is no run.
    """
    store = open_for_verifying(run)
    found = audit(store, on_progress=_progress_line(time.monotonic))
    if as_json:
        print_json(_as_json(found))
    else:
        for finding in found.findings:
            print_line(
                f"{finding.object}: expected {finding.expected}; found {finding.found}; "
                f"{finding.advice}"
            )
        print_line(_summary(store.location, found))
    return Exit.UNEXPECTED if found.findings else Exit.FINISHED


def _progress_line(monotonic: Callable[[], float]) -> Callable[[Progress], None]:
    said_at = monotonic()

    def say(progress: Progress) -> None:
        nonlocal said_at
        if monotonic() - said_at >= _SAY_EVERY_SECONDS:
            said_at = monotonic()
            sys.stderr.write(
                f"verified {progress.num_objects} of {progress.of_objects} objects, "
                f"{size_text(progress.num_bytes)} read\n"
            )
            sys.stderr.flush()

    return say


def _summary(location: str, found: Audit) -> str:
    verdict = f"{len(found.findings)} findings" if found.findings else "sound"
    if len(found.findings) == 1:
        verdict = "1 finding"
    read = (
        f"{found.num_checkpoints} checkpoints, {found.num_objects} objects, "
        f"{size_text(found.num_bytes)} read"
    )
    rest = ""
    if found.uncommitted:
        listed = ", ".join(map(str, found.uncommitted))
        rest = f"; without a commit, so not verified: {listed} (being written, or left over)"
    return f"{location}: {verdict} ({read}){rest}"


def _as_json(found: Audit) -> dict[str, Any]:
    return {
        "sound": not found.findings,
        "findings": [finding._asdict() for finding in found.findings],
        "checkpoints": found.num_checkpoints,
        "objects": found.num_objects,
        "bytes": found.num_bytes,
        "uncommitted": [str(checkpoint) for checkpoint in found.uncommitted],
    }
