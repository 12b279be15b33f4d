"""A dashboard's panels in their places, as one HTML page and as a picture of it."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from PIL import Image

from tests.deploy.dashboards.asking import View
from tests.deploy.dashboards.drawing import graphs, present, timelines
from tests.deploy.dashboards.drawing.graphs import Event
from tests.deploy.dashboards.reading import Model

_CELL, _GAP, _TITLE, _HEAD = 30, 8, 26, 44
_WIDTH = 1680
_COLOURS = 256  # of the picture: a third of the bytes, and nobody sees it

_STYLE = """
body { margin: 0; background: #f4f5f7; font: 12px "DejaVu Sans", Arial, sans-serif; color: #24292e }
.head { position: absolute; left: 12px; top: 12px; font-size: 17px; font-weight: bold }
.head span { font-size: 12px; font-weight: normal; margin-left: 22px; color: #5a6270 }
.row { position: absolute; font-size: 14px; font-weight: bold; padding: 6px 4px }
.panel { position: absolute; background: #fff; border: 1px solid #dfe2e7; border-radius: 3px }
.title { font-size: 12px; font-weight: bold; padding: 6px 8px 0; height: 20px; overflow: hidden }
.tick { font-size: 10px; fill: #5a6270 }
.legend { font-size: 11px; fill: #24292e; white-space: pre } .value { font-weight: bold }
.none { padding: 20px; text-align: center; color: #5a6270 }
.word { font-size: 11px; fill: #fff } .dark { fill: #1f2530 }
.stat { display: flex; flex-direction: column; justify-content: space-evenly; height: 100% }
.line { display: flex; justify-content: space-between; align-items: baseline; padding: 0 12px }
.line b { font-size: 21px } .line span { color: #5a6270 }
.filled { flex: 1; display: flex; align-items: center; justify-content: center; color: #fff;
  font-size: 25px; font-weight: bold; margin: 2px 6px 6px; border-radius: 3px }
table { border-collapse: collapse; width: 100%; font-size: 12.5px }
th { text-align: left; color: #3274d9; padding: 5px 8px; border-bottom: 1px solid #dfe2e7 }
td { padding: 5.5px 8px; border-bottom: 1px solid #eceef1 } .link { color: #3274d9 }
"""

Answers = Mapping[int, Mapping[str, Sequence[graphs.Series]]]


def page(
    board: Model, answers: Answers, view: View, *, chosen: str, events: Sequence[Event] = ()
) -> tuple[str, int]:
    """The page and its height in pixels.

    Args:
        board: the dashboard.
        answers: of each panel's queries, by the panel's id; panels without are left out.
        view: what was asked for.
        chosen: the variables in words, for the head.
        events: lines across the graphs.
    """
    parts = [f'<div class="head">{escape(board["title"])}<span>{escape(chosen)}</span></div>']
    bottom = 0
    for panel in board["panels"]:
        place = panel["gridPos"]
        bottom = max(bottom, place["y"] + place["h"])
        parts.append(_placed(panel, answers, view, events))
    height = _HEAD + bottom * (_CELL + _GAP)
    body = "".join(parts)
    return f'<meta charset="utf-8"><style>{_STYLE}</style><body>{body}</body>', height


def _placed(panel: Model, answers: Answers, view: View, events: Sequence[Event]) -> str:
    place, column = panel["gridPos"], (_WIDTH - _GAP) / 24
    left, top = _GAP + place["x"] * column, _HEAD + place["y"] * (_CELL + _GAP)
    width, height = place["w"] * column - _GAP, place["h"] * (_CELL + _GAP) - _GAP
    where = f"left:{left:.0f}px;top:{top:.0f}px;width:{width:.0f}px;height:{height:.0f}px"
    if panel["type"] == "row":
        arrow = "\u25b8" if panel["collapsed"] else "\u25be"
        return f'<div class="row" style="{where}">{arrow} {escape(panel["title"])}</div>'
    found = answers[panel["id"]]
    size = int(width) - 2, int(height) - _TITLE - 4
    if not any(found.values()):
        inner = '<div class="none">No data</div>'
    elif panel["type"] == "stat":
        inner = present.draw_stat(panel, found)
    elif panel["type"] == "table":
        inner = present.draw_table(panel, found)
    elif panel["type"] == "state-timeline":
        inner = timelines.draw(panel, found, view, events, *size)
    else:
        inner = graphs.draw(panel, found, view, events, *size)
    title = f'<div class="title">{escape(panel["title"])}</div>'
    inside = f'<div style="height:{size[1]}px;overflow:hidden">{inner}</div>'
    return f'<div class="panel" style="{where}">{title}{inside}</div>'


def photograph(html: str, height: int, target: Path, *, folder: Path) -> None:
    """A PNG of the page, by a Chromium without a screen."""
    source = folder / "page.html"
    source.write_text(html)
    flags = (
        "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking "
        "--disable-component-update --disable-sync --hide-scrollbars --virtual-time-budget=3000"
    )
    subprocess.run(
        [
            *("chromium", *flags.split(), f"--window-size={_WIDTH},{height}"),
            *(f"--user-data-dir={folder / 'chromium'}", f"--screenshot={target}"),
            source.as_uri(),
        ],
        check=True,
        capture_output=True,
    )
    with Image.open(target) as picture:
        picture.convert("RGB").quantize(_COLOURS).save(target, optimize=True)
