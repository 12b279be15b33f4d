"""Panels as Grafana 11 knows them, each from what it shows: queries, a unit, words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

Json = dict[str, Any]

DATASOURCE: Json = {"type": "prometheus", "uid": "${datasource}"}

_PALETTE = {"mode": "palette-classic"}
PLAIN: Json = {"mode": "absolute", "steps": [{"color": "text", "value": None}]}


class Query(NamedTuple):
    """One expression of a panel.

    Attributes:
        expr: PromQL.
        legend: name of its series, where `{{label}}` is replaced; in a table, its column's heading,
            and without one the query adds labels alone.
        colour: None takes the palette's for that name.
        dashed: for budgets and bests, beside what is measured.
        unit: None takes the panel's.
        limits: (value, colour) from which on it is shown so; a stat's or a table's.
        meanings: what its numbers mean, where they stand for words.
        decimals: None lets Grafana choose.
        width: of a table's column, in pixels.
        link: of a table's cells.
    """

    expr: str
    legend: str = ""
    colour: str | None = None
    dashed: bool = False
    unit: str | None = None
    limits: Sequence[tuple[float, str]] = ()
    meanings: Mapping[int, Meaning] | None = None
    decimals: int | None = None
    width: int | None = None
    link: str | None = None


class Meaning(NamedTuple):
    """What a number stands for."""

    text: str
    colour: str


class Panel(NamedTuple):
    """A panel without its place; widths are out of 24."""

    width: int
    height: int
    model: Json


def graph(
    title: str,
    description: str,
    *queries: Query,
    width: int,
    unit: str,
    height: int = 6,
    stacked: bool = False,
    bars: bool = False,
    steps: bool = False,
    minimum: float | None = 0,
    maximum: float | None = None,
) -> Panel:
    """Curves over time.

    Args:
        title: names the thing and, where it isn't plain, how it is measured.
        description: what a person on call reads out of it.
        queries: a curve for each of their series.
        width: out of 24.
        unit: Grafana's name of it.
        height: in Grafana's rows.
        stacked: whether the curves add up to something.
        bars: for things that happen now and then.
        steps: for values that stay until the next one.
        minimum: of the axis; None fits the curves.
        maximum: as well.
    """
    custom: Json = {
        "drawStyle": "bars" if bars else "line",
        "lineWidth": 0 if bars else 2,
        "fillOpacity": 70 if bars else 25 if stacked else 0,
        "lineInterpolation": "stepAfter" if steps else "linear",
        "showPoints": "never",
        "spanNulls": False,
        "stacking": {"mode": "normal" if stacked else "none", "group": "A"},
    }
    defaults = _without_none(
        {"unit": unit, "min": minimum, "max": maximum, "color": _PALETTE, "custom": custom}
    )
    options = {
        "legend": {
            "displayMode": "list",
            "placement": "bottom",
            "showLegend": True,
            "calcs": ["lastNotNull"],
        },
        "tooltip": {"mode": "multi", "sort": "desc"},
    }
    model = panel("timeseries", title, description, queries, defaults, options)
    return Panel(width, height, model)


def stat(
    title: str, description: str, *queries: Query, width: int, height: int = 5, filled: bool = False
) -> Panel:
    """Values as they are now, under one another; `filled` colours the whole panel."""
    defaults = {"unit": "short", "color": {"mode": "thresholds"}, "thresholds": PLAIN}
    options = {
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "orientation": "horizontal",
        "colorMode": "background" if filled else "value",
        "graphMode": "none",
        "justifyMode": "center" if filled else "auto",
        "textMode": "value" if filled else "value_and_name",
        "wideLayout": True,
        "showPercentChange": False,
        "percentChangeColorMode": "standard",
    }
    model = panel("stat", title, description, queries, defaults, options, instant=True)
    return Panel(width, height, model)


def timeline(title: str, description: str, *queries: Query, width: int, height: int = 6) -> Panel:
    """What something was doing, over time: a bar for each series, coloured by its meanings."""
    defaults = {
        "color": {"mode": "fixed", "fixedColor": "text"},
        "custom": {"fillOpacity": 85, "lineWidth": 0},
    }
    options = {
        "showValue": "auto",
        "alignValue": "left",
        "rowHeight": 0.85,
        "mergeValues": True,
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []},
        "tooltip": {"mode": "single", "sort": "none"},
    }
    model = panel("state-timeline", title, description, queries, defaults, options)
    return Panel(width, height, model)


def panel(
    kind: Literal["timeseries", "stat", "state-timeline", "table"],
    title: str,
    description: str,
    queries: Sequence[Query],
    defaults: Json,
    options: Json,
    *,
    instant: bool = False,
) -> Json:
    """What all kinds of panels have in common."""
    targets = [
        {
            "refId": ref,
            "datasource": DATASOURCE,
            "editorMode": "code",
            "expr": query.expr,
            "legendFormat": query.legend,
            "instant": instant,
            "range": not instant,
        }
        for ref, query in zip(refs(queries), queries, strict=True)
    ]
    overrides = [
        {"matcher": {"id": "byFrameRefID", "options": ref}, "properties": properties}
        for ref, query in zip(refs(queries), queries, strict=True)
        if (properties := properties_of(query))
    ]
    return {
        "type": kind,
        "title": title,
        "description": description,
        "datasource": DATASOURCE,
        "targets": targets,
        "fieldConfig": {"defaults": defaults, "overrides": overrides},
        "options": options,
    }


def refs(queries: Sequence[Query]) -> list[str]:
    """Names for a panel's queries: A, B, C."""
    return [chr(ord("A") + number) for number in range(len(queries))]


def properties_of(query: Query) -> list[Json]:
    """What makes one query's series different from the panel's other ones."""
    found: Json = {}
    if query.unit is not None:
        found["unit"] = query.unit
    if query.decimals is not None:
        found["decimals"] = query.decimals
    if query.colour is not None:
        found["color"] = {"mode": "fixed", "fixedColor": query.colour}
    if query.dashed:
        found["custom.lineStyle"] = {"fill": "dash", "dash": [8, 6]}
    if query.limits:
        steps = [{"color": colour, "value": value} for value, colour in query.limits]
        found["thresholds"] = {"mode": "absolute", "steps": [*PLAIN["steps"], *steps]}
    if query.meanings:
        found["mappings"] = [mappings(query.meanings)]
    return [{"id": name, "value": value} for name, value in found.items()]


def mappings(meanings: Mapping[int, Meaning]) -> Json:
    """Grafana's form of words for numbers."""
    options = {
        str(number): {"text": meaning.text, "color": meaning.colour, "index": index}
        for index, (number, meaning) in enumerate(meanings.items())
    }
    return {"type": "value", "options": options}


def _without_none(found: Json) -> Json:
    return {name: value for name, value in found.items() if value is not None}
