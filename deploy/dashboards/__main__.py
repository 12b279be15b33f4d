"""Writes the chart's dashboards: python -m deploy.dashboards."""

from __future__ import annotations

import json
from pathlib import Path

from deploy.dashboards.fleet import fleet
from deploy.dashboards.panels import Json
from deploy.dashboards.run import run

FOLDER = Path(__file__).resolve().parent.parent / "helm/tandem-monitoring/dashboards"


def boards() -> dict[str, Json]:
    """All dashboards by the names of their files."""
    return {f"{made['uid']}.json": made for made in (run(), fleet())}


def text_of(board: Json) -> str:
    """As it is kept."""
    return json.dumps(board, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for name, made in boards().items():
        (FOLDER / name).write_text(text_of(made))
