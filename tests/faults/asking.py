"""`tandem status --json` as a person runs it: a process from cold, timed from outside."""

import json
import subprocess
import sys
import time
from pathlib import Path

from tests.faults.judging import Answer
from tests.soak.processes import ROOT

_PATIENCE_SECONDS = 30.0
_TANDEM = Path(sys.executable).with_name("tandem")


def ask(*arguments, environment, keep: Path):
    """Asks once.

    Args:
        arguments: that name the run.
        environment: of the process.
        keep: file for what it printed.
    """
    began = time.monotonic()
    try:
        done = subprocess.run(
            [_TANDEM, "status", *map(str, arguments), "--json"],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Answer("", "", "", _PATIENCE_SECONDS, -1, "no answer")
    seconds = time.monotonic() - began
    keep.write_text(done.stdout + done.stderr)
    return answer_of(done.stdout, done.stderr, exit_code=done.returncode, seconds=seconds)


def answer_of(output, errors, *, exit_code, seconds):
    """What was printed, as an answer; one without a health where nothing can be made of it."""
    try:
        document = json.loads(output)
        first = document["findings"][0] if document["findings"] else {}
        return Answer(
            document["health"],
            document["cause"] or "",
            first.get("code", ""),
            seconds,
            exit_code,
            document["text"],
        )
    except (ValueError, KeyError, TypeError):
        return Answer("", "", "", seconds, exit_code, (errors or output).strip()[-300:])
