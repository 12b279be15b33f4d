"""How a panel wants its values shown: colours, units, words, as Grafana reads its JSON."""

from __future__ import annotations

import math
from typing import Any

from tests.deploy.dashboards.reading import Model

_NAMED = {
    "text": "#5a6270",
    "red": "#d9304a",
    "orange": "#ef7d0f",
    "yellow": "#eab308",
    "green": "#3f9b3a",
    "super-light-green": "#b9dfb0",
    "blue": "#3274d9",
    "light-blue": "#7fb0f5",
    "dark-blue": "#1c4a9c",
    "purple": "#9350c2",
}
_CLASSIC = ("#4c9f38", "#e0a800", "#35a7c2", "#e8702a", "#cf3a3a", "#1f78c1", "#ba43a9", "#705da0")

_TIMES = ((31536000, "y"), (86400, "d"), (3600, "h"), (60, "min"), (1, "s"), (1e-3, "ms"))
_BYTES = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B"))


def colour(name: str) -> str:
    return _NAMED[name]


def classic(number: int) -> str:
    return _CLASSIC[number % len(_CLASSIC)]


def look(panel: Model, ref: str, heading: str = "") -> dict[str, Any]:
    """The panel's defaults, with what overrides say of one query or of one column."""
    config = panel["fieldConfig"]
    found = dict(config["defaults"])
    for override in config["overrides"]:
        matcher = override["matcher"]
        if matcher in (
            {"id": "byFrameRefID", "options": ref},
            {"id": "byName", "options": heading},
        ):
            found |= {each["id"]: each["value"] for each in override["properties"]}
    return found


def meaning(looks: dict[str, Any], value: float) -> tuple[str, str] | None:
    """The word that stands for a value, and its colour."""
    for mapping in looks.get("mappings", []):
        given = mapping["options"].get(f"{value:g}")
        if given:
            return given["text"], colour(given["color"])
    return None


def limit_colour(looks: dict[str, Any], value: float) -> str:
    """By thresholds."""
    steps = looks.get("thresholds", {"steps": [{"color": "text", "value": None}]})["steps"]
    reached = [s for s in steps if s["value"] is None or value >= s["value"]]
    return colour(reached[-1]["color"])


def shown(value: float, looks: dict[str, Any]) -> str:
    """A number with its unit."""
    unit, decimals = looks.get("unit", "none"), looks.get("decimals")
    if unit == "s":
        return _scaled(value, _TIMES, decimals)
    if unit == "bytes":
        return _scaled(value, _BYTES, decimals)
    if unit == "percentunit":
        return f"{_digits(100 * value, decimals)}\u2009%"
    if unit == "locale" and value == round(value):
        return f"{value:,.0f}"
    if unit == "reqps":
        return f"{_digits(value, decimals)} req/s"
    return _digits(value, decimals)


def _scaled(value: float, scales: tuple[tuple[float, str], ...], decimals: int | None) -> str:
    for size, name in scales:
        if abs(value) >= size:
            return f"{_digits(value / size, decimals)}\u2009{name}"
    return f"0\u2009{scales[-2][1]}"


def _digits(value: float, decimals: int | None) -> str:
    if decimals is None:
        if value == 0:
            return "0"
        decimals = min(6, max(0, 2 - math.floor(math.log10(abs(value)))))
        return f"{value:.{decimals}f}".rstrip("0").rstrip(".") if decimals else f"{value:.0f}"
    return f"{value:.{decimals}f}"
