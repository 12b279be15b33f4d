"""How the `tandem store` commands print: plain lines, tables, or one JSON object."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from services.ctl.streams import escaped


def print_line(text: str) -> None:
    """One line on standard output, never wrapped, so that it can be searched."""
    sys.stdout.write(escaped(text) + "\n")


def print_json(value: Mapping[str, Any]) -> None:
    """One JSON object on standard output, in ASCII: names may hold what UTF-8 can't."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=True, allow_nan=False) + "\n")


def say(message: str) -> None:
    """A line for the person who waits, on standard error."""
    sys.stderr.write(escaped(message) + "\n")
    sys.stderr.flush()
