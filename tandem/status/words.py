"""How findings speak of times and of others' words."""

from __future__ import annotations

_UNITS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"))
_MAX_CHARACTERS = 240


def age_text(seconds: float | None) -> str:
    """`5 s`, `12 min`, `3 h`, `4 d`; `?` where it isn't known."""
    if seconds is None:
        return "?"
    for length, unit in _UNITS:
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"


def counted(number: int, noun: str) -> str:
    """`1 step`, `1,200 steps`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def one_line(text: str, *, most: int = _MAX_CHARACTERS) -> str:
    """Somebody else's words, on one line and not too many."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 3]}..."
