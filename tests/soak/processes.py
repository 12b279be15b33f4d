"""Trainer and evaluator as real processes: started, disturbed, and ended by their ids."""

import ctypes
import re
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1
_ALARMING = re.compile(r"Traceback \(most recent call last\)|Fatal Python error| ERROR ")


def _die_with_parent():
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Process:
    """A child with its output in a file; it dies with the soak, however that ends.

    Attributes:
        name: for people.
        may_exit_with: exit codes that what was done to it allows; none while it should run.
        returns: whether it is started again after its end.
    """

    def __init__(self, name, module, arguments, *, log: Path, environment):
        log.parent.mkdir(parents=True, exist_ok=True)
        self.name = name
        self.log = log
        self.may_exit_with: frozenset[int] = frozenset()
        self.returns = True
        self._told = 0
        with log.open("ab") as output:
            self._child = subprocess.Popen(
                [sys.executable, "-m", module, *map(str, arguments)],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                preexec_fn=_die_with_parent,
            )

    @property
    def exit_code(self):
        """None while it runs."""
        return self._child.poll()

    @property
    def text(self):
        return self.log.read_text(errors="replace")

    def send(self, number: signal.Signals, *, may_exit_with=()):
        self.may_exit_with |= frozenset(may_exit_with)
        self._child.send_signal(number)

    def kill(self):
        """kill -9; it has ended when this returns."""
        self.send(signal.SIGKILL, may_exit_with=[-signal.SIGKILL])
        self._child.wait()

    def wait(self, seconds):
        """Its exit code; None when it doesn't end in time."""
        try:
            return self._child.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def say_where_it_hangs(self):
        """Ends it; its log says then where each thread was."""
        if self.exit_code is None:
            self.send(signal.SIGCONT)
            self.send(signal.SIGABRT)
            self.wait(10)
        self.end()

    def end(self):
        if self._child.poll() is None:
            self._child.kill()
        self._child.wait()

    def alarming_lines(self):
        """What the log says that no disturbance excuses, each line once."""
        *lines, _ = self.text.split("\n")  # the last one may be half written
        found = [line for line in lines[self._told :] if _ALARMING.search(line)]
        self._told = len(lines)
        return found
