"""Standard output and standard error of `tandem`: what may be written to them, and their end.

Texts from a run folder (names, reasons, holders) are escaped: a terminal obeys what it is sent.
Where nobody reads standard output (any more), be it a pipe whose reader left or a stream that was
closed from the start, the command ends with `NOBODY_READS` once it has something to say.
"""

from __future__ import annotations

import io
import logging
import os
import sys
from collections.abc import Callable
from typing import NoReturn, TextIO

from rich.console import Console

from services.exits import Exit

NOBODY_READS = 141
"""Exit code as of a program that SIGPIPE ended (128 + 13), so not taken for a verdict."""


def escaped(text: str) -> str:
    """The text with controls, surrogates and the like spelt out, as Python spells them."""
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text
    )


def escaped_lines(text: str) -> str:
    """The same for a message of several lines."""
    return "\n".join(map(escaped, text.split("\n")))


def shortened(text: str, *, most: int = 40) -> str:
    """What a message quotes of a user's word, which may be a file pasted by mistake."""
    return text if len(text) <= most else f"{text[:most]}..."


class PlainConsole(Console):
    """A console that takes text literally and leaves the end of a pipe to `carried_out`."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, markup=False, emoji=False, highlight=False)

    def on_broken_pipe(self) -> NoReturn:
        """Passes the error on, where rich's own would end the process."""
        raise BrokenPipeError


def prepare() -> None:
    """Gives the process all its streams, none of which fails at a character."""
    if sys.stderr is None:
        sys.stderr = _stream_at(2, os.open(os.devnull, os.O_WRONLY))
    if sys.stdout is None:
        sys.stdout = _stream_at(1, _pipe_without_reader())
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    logging.lastResort = _EscapingHandler(logging.WARNING)


def carried_out(command: Callable[[], int]) -> int:
    """Runs a command and sees its output off; returns the exit code."""
    try:
        try:
            code = command()
        except SystemExit as end:  # argparse has said its message
            code = end.code if isinstance(end.code, int) else Exit.FINISHED
        sys.stdout.flush()
    except BrokenPipeError:
        _let_go()
        return NOBODY_READS
    except OSError as error:
        sys.stderr.write(f"tandem: standard output can't be written: {error.strerror or error}\n")
        _let_go()
        return Exit.UNEXPECTED
    return code


class _EscapingHandler(logging.Handler):
    """Log lines of a command that set up no logging, as Python's own last resort writes them."""

    def emit(self, record: logging.LogRecord) -> None:
        sys.stderr.write(escaped_lines(self.format(record)) + "\n")
        sys.stderr.flush()


def _stream_at(number: int, descriptor: int) -> TextIO:
    """A text stream at a standard descriptor, which else the next file to be opened would get."""
    if descriptor != number:
        os.dup2(descriptor, number)
        os.close(descriptor)
    return open(number, "w", encoding="utf-8", closefd=False)


def _pipe_without_reader() -> int:
    reading, writing = os.pipe()
    os.close(reading)
    return writing


def _let_go() -> None:
    """Sends what is still held back nowhere: Python flushes at exit, and would complain."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
