"""Curves, bars and stacks over time, as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tests.deploy.dashboards.asking import View, legend
from tests.deploy.dashboards.drawing import axes, looks, svg
from tests.deploy.dashboards.drawing.axes import Frame
from tests.deploy.dashboards.prometheus import Series
from tests.deploy.dashboards.reading import Model

_LEGEND_LINE, _CHARACTER = 16, 7.1
_GRID = "#e6e8ec"

Answers = Mapping[str, Sequence[Series]]


class Curve(NamedTuple):
    """One series with how it is drawn."""

    name: str
    colour: str
    dashed: bool
    looks: dict[str, Any]
    points: list[tuple[float, float]]
    last: float


class Event(NamedTuple):
    """A line across a graph."""

    when: float
    colour: str


def draw(
    panel: Model, answers: Answers, view: View, events: Sequence[Event], width: int, height: int
) -> str:
    curves = _curves(panel, answers)
    custom = panel["fieldConfig"]["defaults"]["custom"]
    if custom["stacking"]["mode"] == "normal":
        curves = _stacked(curves)
    labels, lines = _legend(curves, width)
    frame = _frame(panel, curves, view, width, height - lines * _LEGEND_LINE)
    inner = [_grid(panel, frame), *(event_line(event, frame) for event in events)]
    drawn = _bars if custom["drawStyle"] == "bars" else _lines
    inner.append(drawn(curves, custom, frame, view))
    inner.append(f'<g transform="translate(0,{height - lines * _LEGEND_LINE + 12})">{labels}</g>')
    return f'<svg width="{width}" height="{height}">{"".join(inner)}</svg>'


def _curves(panel: Model, answers: Answers) -> list[Curve]:
    curves: list[Curve] = []
    for target in panel["targets"]:
        look = looks.look(panel, target["refId"])
        fixed = look["color"].get("fixedColor")
        for series in answers[target["refId"]]:
            curves.append(
                Curve(
                    name=legend(target["legendFormat"], series),
                    colour=looks.colour(fixed) if fixed else looks.classic(len(curves)),
                    dashed="custom.lineStyle" in look,
                    looks=look,
                    points=series.points,
                    last=series.last,
                )
            )
    return curves


def _stacked(curves: list[Curve]) -> list[Curve]:
    """Each on top of those before; the topmost first, so that the lower ones cover it."""
    below: dict[float, float] = {}
    raised = []
    for curve in curves:
        points = []
        for when, value in curve.points:
            below[when] = below.get(when, 0.0) + value
            points.append((when, below[when]))
        raised.append(curve._replace(points=points))
    return raised


def _frame(panel: Model, curves: list[Curve], view: View, width: int, height: float) -> Frame:
    defaults = panel["fieldConfig"]["defaults"]
    values = [value for curve in curves for _, value in curve.points] or [0.0]
    low, high = defaults.get("min", min(values)), defaults.get("max", max(values))
    ticks = axes.marks(low, high, 4, unit=defaults["unit"])
    return Frame(54, width - 8, 6, height - 20, view.start, view.end, ticks[0], ticks[-1])


def _grid(panel: Model, frame: Frame) -> str:
    defaults, parts = panel["fieldConfig"]["defaults"], []
    for value in axes.marks(frame.low, frame.high, 4, unit=defaults["unit"]):
        y = frame.y(value)
        parts.append(svg.line(f"M{frame.left},{y:.1f}H{frame.right}", _GRID, width=1))
        words = looks.shown(value, defaults)
        parts.append(svg.text(frame.left - 6, y + 3.5, words, kind="tick", anchor="end"))
    for when, words in axes.clocks(frame):
        x = frame.x(when)
        parts.append(svg.line(f"M{x:.1f},{frame.top}V{frame.bottom}", _GRID, width=1))
        parts.append(svg.text(x, frame.bottom + 15, words, kind="tick", anchor="middle"))
    return "".join(parts)


def event_line(event: Event, frame: Frame) -> str:
    """A dashed line with a mark at its foot."""
    x = frame.x(event.when)
    line = svg.line(f"M{x:.1f},{frame.top}V{frame.bottom}", event.colour, width=1, dashes="3 2")
    return line + svg.area(f"M{x - 4:.1f},{frame.bottom + 5}h8l-4,-5z", event.colour)


def _lines(curves: list[Curve], custom: Model, frame: Frame, view: View) -> str:
    is_stacked = custom["stacking"]["mode"] == "normal"
    drawn = []
    for curve in reversed(curves) if is_stacked else curves:
        for stretch in _stretches(curve.points, view.step):
            path = _path(stretch, frame, steps=custom["lineInterpolation"] == "stepAfter")
            if is_stacked:
                first, last = frame.x(stretch[0][0]), frame.x(stretch[-1][0])
                area = f"{path}L{last:.1f},{frame.bottom}L{first:.1f},{frame.bottom}Z"
                drawn.append(svg.area(area, "#fff"))
                drawn.append(svg.area(area, curve.colour, opacity=0.35))
            drawn.append(svg.line(path, curve.colour, dashes="6 4" if curve.dashed else "none"))
    return "".join(drawn)


def _bars(curves: list[Curve], custom: Model, frame: Frame, view: View) -> str:
    wide = max(1.0, frame.x(view.start + view.step) - frame.left)
    return "".join(
        svg.rectangle(
            frame.x(when) - wide / 2, frame.y(value), wide, frame.bottom - frame.y(value), c.colour
        )
        for c in reversed(curves)
        for when, value in c.points
        if value > frame.low
    )


def _stretches(points: list[tuple[float, float]], step: float) -> list[list[tuple[float, float]]]:
    """Parts without a gap."""
    parts: list[list[tuple[float, float]]] = []
    for point in points:
        if not parts or point[0] - parts[-1][-1][0] > 1.5 * step:
            parts.append([])
        parts[-1].append(point)
    return parts


def _path(points: list[tuple[float, float]], frame: Frame, *, steps: bool) -> str:
    (when, value), *rest = points
    parts = [f"M{frame.x(when):.1f},{frame.y(value):.1f}"]
    for when, value in rest:
        x, y = frame.x(when), frame.y(value)
        parts.append(f"H{x:.1f}V{y:.1f}" if steps else f"L{x:.1f},{y:.1f}")
    if len(points) == 1:
        parts.append("h2")
    return "".join(parts)


def _legend(curves: list[Curve], width: int) -> tuple[str, int]:
    """Names with their last values, in as many lines as it takes."""
    x, line, parts = 8.0, 0, []
    for curve in curves:
        last = looks.shown(curve.last, curve.looks)
        name_width, last_width = (_CHARACTER * len(words) for words in (curve.name, last))
        needed = 36 + name_width + last_width
        if x > 8 and x + needed > width:
            x, line = 8.0, line + 1
        y = line * _LEGEND_LINE
        dashes = "4 3" if curve.dashed else "none"
        parts += [
            svg.line(f"M{x:.0f},{y - 4}h14", curve.colour, width=3, dashes=dashes),
            svg.text(x + 19, y, curve.name, kind="legend"),
            svg.text(x + 25 + name_width, y, last, kind="legend value"),
        ]
        x += needed + 6
    return "".join(parts), line + 1
