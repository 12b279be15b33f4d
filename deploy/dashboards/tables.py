"""Tables: a row for each set of labels."""

from __future__ import annotations

from collections.abc import Mapping

from deploy.dashboards.panels import PLAIN, Json, Panel, Query, panel, properties_of, refs


def table(
    title: str,
    description: str,
    *queries: Query,
    keys: dict[str, str],
    width: int,
    height: int,
    worst_first: str | None = None,
    key_links: Mapping[str, str] | None = None,
) -> Panel:
    """A row for each set of labels, a column for each query.

    Args:
        title: names the rows.
        description: what a person on call reads out of it.
        queries: each becomes a column headed by its legend.
        keys: labels that make a row, by name, with their headings.
        width: out of 24.
        height: in Grafana's rows.
        worst_first: heading of the column that sorts, highest first.
        key_links: where a heading's cells lead.
    """
    values = {
        f"Value #{ref}": query.legend for ref, query in zip(refs(queries), queries, strict=True)
    }
    headings = {column: heading for column, heading in (keys | values).items() if heading}
    hidden = ["Time", *(column for column in values if column not in headings)]
    organize = {
        "id": "organize",
        "options": {
            "excludeByName": dict.fromkeys(hidden, True),
            "indexByName": {column: number for number, column in enumerate(headings)},
            "renameByName": headings,
        },
    }
    sort_by = [{"displayName": worst_first, "desc": True}] if worst_first else []
    defaults = {
        "color": {"mode": "thresholds"},
        "thresholds": PLAIN,
        "custom": {"align": "left", "cellOptions": {"type": "auto"}, "filterable": False},
    }
    options = {"showHeader": True, "cellHeight": "sm", "frameIndex": 0, "sortBy": sort_by}
    model = panel("table", title, description, queries, defaults, options, instant=True)
    for target in model["targets"]:
        target["format"] = "table"
        del target["legendFormat"]
    model["transformations"] = [{"id": "merge", "options": {}}, organize]
    model["fieldConfig"]["overrides"] = [
        *(_column(query) for query in queries if properties_of(query)),
        *(_linked(heading, url) for heading, url in (key_links or {}).items()),
    ]
    return Panel(width, height, model)


def _column(query: Query) -> Json:
    properties = properties_of(query)
    if query.limits or query.meanings:
        kind = "color-background" if query.meanings else "color-text"
        properties.append({"id": "custom.cellOptions", "value": {"type": kind}})
    if query.width is not None:
        properties.append({"id": "custom.width", "value": query.width})
    if query.link is not None:
        properties.append(_links(query.link))
    return {"matcher": {"id": "byName", "options": query.legend}, "properties": properties}


def _linked(heading: str, url: str) -> Json:
    return {"matcher": {"id": "byName", "options": heading}, "properties": [_links(url)]}


def _links(url: str) -> Json:
    return {"id": "links", "value": [{"title": "Open this run", "url": url}]}
