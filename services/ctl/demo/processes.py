"""The demo's two processes: started, watched, stopped by their ids."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


class Process:
    """A child with its output in a log file.

    It is in a session of its own, so that Ctrl-C reaches the demo alone, which then stops its
    children in order.
    """

    def __init__(self, module: str, arguments: Sequence[str], *, log: Path) -> None:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            self._child = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self.log = log

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._child.poll()

    def ask_to_stop(self) -> None:
        """Sends SIGTERM, unless it has ended."""
        if self._child.poll() is None:
            self._child.send_signal(signal.SIGTERM)

    def end(self, *, patience_seconds: float) -> int:
        """Waits for its end, and kills it when that takes too long; returns its exit code."""
        try:
            return self._child.wait(patience_seconds)
        except subprocess.TimeoutExpired:
            self._child.kill()
            return self._child.wait()
