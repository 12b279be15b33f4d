"""Bars of what something was doing, as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.deploy.dashboards.asking import View, legend
from tests.deploy.dashboards.drawing import axes, looks, svg
from tests.deploy.dashboards.drawing.axes import Frame
from tests.deploy.dashboards.drawing.graphs import Event, event_line
from tests.deploy.dashboards.prometheus import Series
from tests.deploy.dashboards.reading import Model

_LEFT, _FOOT, _LEGEND = 74, 20, 20
_CHARACTER = 6.2


def draw(
    panel: Model,
    answers: Mapping[str, Sequence[Series]],
    view: View,
    events: Sequence[Event],
    width: int,
    height: int,
) -> str:
    frame = Frame(_LEFT, width - 8, 4, height - _FOOT - _LEGEND, view.start, view.end, 0, 1)
    rows = [(target, s) for target in panel["targets"] for s in answers[target["refId"]]]
    tall = (frame.bottom - frame.top) / max(1, len(rows))
    parts, seen = [_ticks(frame)], {}
    for number, (target, series) in enumerate(rows):
        look = looks.look(panel, target["refId"])
        top = frame.top + (number + 0.075) * tall
        name = legend(target["legendFormat"], series)
        middle = top + 0.425 * tall + 4
        parts.append(svg.text(_LEFT - 8, middle, name, kind="legend", anchor="end"))
        for start, end, value in _stays(series, view.step):
            word, colour = looks.meaning(look, value) or (f"{value:g}", looks.colour("text"))
            seen[word] = colour
            parts.append(_bar(frame, start, end, top, 0.85 * tall, word, colour))
    parts += [event_line(event, frame) for event in events]
    parts.append(_legend(seen, height))
    return f'<svg width="{width}" height="{height}">{"".join(parts)}</svg>'


def _ticks(frame: Frame) -> str:
    return "".join(
        svg.text(frame.x(when), frame.bottom + 15, words, kind="tick", anchor="middle")
        for when, words in axes.clocks(frame)
    )


def _stays(series: Series, step: float) -> list[tuple[float, float, float]]:
    """From when to when it had which value."""
    found: list[tuple[float, float, float]] = []
    for when, value in series.points:
        if found and found[-1][2] == value and when - found[-1][1] < 0.5 * step:
            found[-1] = (found[-1][0], when + step, value)
        else:
            found.append((when, when + step, value))
    return found


def _bar(
    frame: Frame, start: float, end: float, top: float, tall: float, word: str, colour: str
) -> str:
    left, right = frame.x(start), min(frame.x(end), frame.right)
    bar = svg.rectangle(left, top, max(0.5, right - left), tall, colour)
    if right - left < _CHARACTER * len(word) + 8:
        return bar
    kind = "word dark" if colour == looks.colour("super-light-green") else "word"
    return bar + svg.text(left + 5, top + tall / 2 + 4, word, kind=kind)


def _legend(seen: Mapping[str, str], height: int) -> str:
    x, parts = 8.0, []
    for word, colour in seen.items():
        parts.append(svg.rectangle(x, height - 13, 14, 5, colour))
        parts.append(svg.text(x + 19, height - 6, word, kind="legend"))
        x += 34 + _CHARACTER * len(word)
    return "".join(parts)
