"""What is so now: big values and tables, as HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from tests.deploy.dashboards.asking import legend
from tests.deploy.dashboards.drawing import looks
from tests.deploy.dashboards.prometheus import Series
from tests.deploy.dashboards.reading import Model

Answers = Mapping[str, Sequence[Series]]


def draw_stat(panel: Model, answers: Answers) -> str:
    is_filled = panel["options"]["colorMode"] == "background"
    lines = []
    for target in panel["targets"]:
        look = looks.look(panel, target["refId"])
        for series in answers[target["refId"]]:
            text, colour = looks.meaning(look, series.last) or (
                looks.shown(series.last, look),
                looks.limit_colour(look, series.last),
            )
            if is_filled:
                background = "#aab1bd" if colour == looks.colour("text") else colour
                lines.append(f'<div class="filled" style="background:{background}">{text}</div>')
                continue
            name = escape(legend(target["legendFormat"], series))
            lines.append(
                f'<div class="line"><span>{name}</span><b style="color:{colour}">{text}</b></div>'
            )
    return f'<div class="stat">{"".join(lines) or "No data"}</div>'


def draw_table(panel: Model, answers: Answers) -> str:
    _, organize = panel["transformations"]
    names = organize["options"]["renameByName"]
    cells = [f"<th>{escape(heading)}</th>" for heading in names.values()]
    rows = _merged(answers)
    for sort in panel["options"]["sortBy"]:
        (column,) = [name for name, heading in names.items() if heading == sort["displayName"]]
        rows.sort(key=lambda row: row.get(column, float("-inf")), reverse=sort["desc"])
    lines = ["".join(cells)]
    for row in rows:
        lines.append("".join(_cell(panel, head, row.get(name)) for name, head in names.items()))
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def _merged(answers: Answers) -> list[dict[str, Any]]:
    """Grafana's merge: rows that agree in the labels that all queries have become one."""
    shared = set.intersection(
        *(set(series.labels) for found in answers.values() for series in found[:1])
    )
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    for ref, found in answers.items():
        for series in found:
            key = tuple(series.labels[name] for name in sorted(shared))
            row = rows.setdefault(key, {})
            row |= {**series.labels, f"Value #{ref}": series.last}
    return list(rows.values())


def _cell(panel: Model, heading: str, value: float | str | None) -> str:
    if value is None:
        return "<td></td>"
    if isinstance(value, str):
        has_link = any(
            o["matcher"]["options"] == heading and o["properties"][0]["id"] == "links"
            for o in panel["fieldConfig"]["overrides"]
        )
        return f'<td class="{"link" if has_link else ""}">{escape(value)}</td>'
    look = looks.look(panel, "", heading)
    said = looks.meaning(look, value)
    if said:
        text, colour = said
        ink = "#1f2530" if colour == looks.colour("super-light-green") else "#fff"
        return f'<td style="background:{colour};color:{ink}">{text}</td>'
    return f'<td style="color:{looks.limit_colour(look, value)}">{looks.shown(value, look)}</td>'
