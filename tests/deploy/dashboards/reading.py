"""The dashboards as they are kept, and their queries with Grafana's variables filled in."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tests.deploy.rendering import MONITORING

FOLDER = MONITORING / "dashboards"
NAMES = ("tandem-run", "tandem-fleet")

Model = dict[str, Any]


def board(name: str) -> Model:
    return json.loads((FOLDER / f"{name}.json").read_text())


def panels(made: Model) -> Iterator[tuple[Model, Model]]:
    """Each panel after the row that it stands in, those of collapsed rows included."""
    row: Model = {}
    for panel in made["panels"]:
        if panel["type"] != "row":
            yield row, panel
            continue
        row = panel
        for inner in panel["panels"]:
            yield row, inner


def queries(made: Model) -> list[str]:
    """All expressions: of panels and of annotations."""
    shown = [target["expr"] for _, panel in panels(made) for target in panel["targets"]]
    return [*shown, *(each["expr"] for each in made["annotations"]["list"])]


def filled(expression: str, values: Mapping[str, str]) -> str:
    """An expression as Grafana sends it: `$run` replaced, longer names first."""
    for name in sorted(values, key=len, reverse=True):
        expression = expression.replace(f"${name}", values[name])
    return expression


ANYTHING = {
    "namespace": "research",
    "run": "raccoon",
    "eval_set": ".+",
    "__rate_interval": "2m",
    "__range": "6h",
}
"""For those who only parse."""
