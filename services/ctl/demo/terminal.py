"""Small courtesies of a live terminal view."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def control_characters_hidden() -> Iterator[None]:
    """Keeps the terminal from writing `^C` into the view, which would shift its lines."""
    try:
        import termios  # noqa: PLC0415  # not on every system
    except ImportError:
        yield
        return
    if not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    quiet = [*before]
    quiet[3] &= ~termios.ECHOCTL
    termios.tcsetattr(sys.stdin, termios.TCSANOW, quiet)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSANOW, before)
