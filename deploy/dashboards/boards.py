"""Whole dashboards: rows of panels put into their places, variables, annotations, links."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from deploy.dashboards.panels import DATASOURCE, Json, Panel

_WIDTH = 24
_SCHEMA_VERSION = 39  # Grafana 11.0's; later ones read it, too


class Row(NamedTuple):
    """Panels under a heading; a collapsed row's queries run once someone opens it."""

    title: str
    panels: Sequence[Panel]
    collapsed: bool = False


class Variable(NamedTuple):
    """A choice at the top, made of a label's values.

    Attributes:
        name: as `$name` in queries.
        label: what people see.
        values: such as `label_values(metric, label)`.
        several: whether all of them may be chosen together.
    """

    name: str
    label: str
    values: str
    several: bool = False


class Annotation(NamedTuple):
    """A line at each time that an expression has a value."""

    name: str
    expr: str
    text: str
    colour: str


def board(
    *,
    uid: str,
    title: str,
    description: str,
    variables: Sequence[Variable],
    annotations: Sequence[Annotation],
    links: Sequence[Json],
    rows: Sequence[Row],
) -> Json:
    """A dashboard; `uid` is what links and bookmarks know it by, and stays."""
    return {
        "uid": uid,
        "title": title,
        "description": description,
        "tags": ["tandem"],
        "schemaVersion": _SCHEMA_VERSION,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "browser",
        "templating": {"list": [_datasource(), *map(_variable, variables)]},
        "annotations": {"list": [_annotation(each) for each in annotations]},
        "links": list(links),
        "panels": _placed(rows),
    }


def link_to(uid: str, title: str) -> Json:
    """A link at the top that keeps the time range and the variables."""
    return {
        "type": "link",
        "title": title,
        "url": f"/d/{uid}",
        "icon": "external link",
        "tooltip": "",
        "tags": [],
        "asDropdown": False,
        "targetBlank": False,
        "includeVars": True,
        "keepTime": True,
    }


def _placed(rows: Sequence[Row]) -> list[Json]:
    """From the top left to the bottom right, each line of panels as high as its first."""
    models: list[Json] = []
    number, y = 1, 0
    for row in rows:
        inner: list[Json] = []
        heading = {
            "id": number,
            "type": "row",
            "title": row.title,
            "collapsed": row.collapsed,
            "gridPos": {"x": 0, "y": y, "w": _WIDTH, "h": 1},
            "panels": inner if row.collapsed else [],
        }
        models.append(heading)
        number, x, y = number + 1, 0, y + 1
        for panel in row.panels:
            place = {"x": x, "y": y, "w": panel.width, "h": panel.height}
            (inner if row.collapsed else models).append(
                {"id": number, **panel.model, "gridPos": place}
            )
            number, x = number + 1, x + panel.width
            if x == _WIDTH:
                x, y = 0, y + panel.height
    return models


def _datasource() -> Json:
    return {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
        "current": {"text": "default", "value": "default"},
        "hide": 0,
        "refresh": 1,
        "includeAll": False,
        "multi": False,
    }


def _variable(variable: Variable) -> Json:
    everything = {"text": ["All"], "value": ["$__all"]}
    return {
        "name": variable.name,
        "label": variable.label,
        "type": "query",
        "datasource": DATASOURCE,
        "query": {"query": variable.values, "refId": "V"},
        "refresh": 2,
        "sort": 1,
        "hide": 0,
        "multi": variable.several,
        "includeAll": variable.several,
        **({"allValue": ".+", "current": everything} if variable.several else {}),
    }


def _annotation(annotation: Annotation) -> Json:
    return {
        "name": annotation.name,
        "enable": True,
        "hide": False,
        "iconColor": annotation.colour,
        "datasource": DATASOURCE,
        "expr": annotation.expr,
        "step": "60s",
        "titleFormat": annotation.name,
        "textFormat": annotation.text,
    }
