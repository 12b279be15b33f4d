"""Sizes and times, short enough for a table."""

from __future__ import annotations

from datetime import datetime, timezone

_SIZE_UNITS = ("B", "kB", "MB", "GB", "TB")


def size_text(num_bytes: int) -> str:
    """`17 MB`; units of a thousand, as disks and buckets are billed."""
    value, unit = float(num_bytes), 0
    while value >= 999.5 and unit < len(_SIZE_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    digits = 1 if unit and value < 9.95 else 0
    return f"{value:.{digits}f} {_SIZE_UNITS[unit]}"


def seconds_since(timestamp: str, *, now: datetime) -> float | None:
    """Seconds from a record's timestamp to now, by two clocks; None when it is no timestamp."""
    try:
        then = datetime.strptime(timestamp, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc)
    except ValueError:
        return None
    return (now - then).total_seconds()
