"""What a panel shows: its queries' answers, as Grafana would ask for them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import NamedTuple

from tests.deploy.dashboards.prometheus import Prometheus, Series
from tests.deploy.dashboards.reading import Model, filled

_MOST_POINTS = 300


class View(NamedTuple):
    """What is chosen at the top of a dashboard.

    Attributes:
        variables: by name, as queries are to get them.
        start: of the time range, in seconds since 1970.
        end: "now" for panels that show the present.
        scrape_seconds: between two samples.
    """

    variables: Mapping[str, str]
    start: float
    end: float
    scrape_seconds: float

    @property
    def step(self) -> float:
        return max(self.scrape_seconds, (self.end - self.start) / _MOST_POINTS)

    def filled(self, expression: str) -> str:
        rate_interval = max(4 * self.scrape_seconds, self.step + self.scrape_seconds)
        built_in = {
            "__rate_interval": f"{math.ceil(rate_interval)}s",
            "__range": f"{math.ceil(self.end - self.start)}s",
        }
        return filled(expression, {**built_in, **self.variables})


def answers(prometheus: Prometheus, panel: Model, view: View) -> dict[str, list[Series]]:
    """By the names of the queries; what is not a number is no answer."""
    return {
        target["refId"]: [
            series for found in _ask(prometheus, target, view) if (series := _numbers(found)).points
        ]
        for target in panel["targets"]
    }


def events(prometheus: Prometheus, annotation: Model, view: View) -> list[tuple[float, str]]:
    """When an annotation's expression had a value, and what it says then; once for each stretch."""
    expression = view.filled(annotation["expr"])
    found = []
    for series in prometheus.over(expression, view.start, view.end, view.step):
        before = -math.inf
        for when, _ in series.points:
            if when - before > 1.5 * view.step:
                found.append((when, legend(annotation["textFormat"], series)))
            before = when
    return sorted(found)


def legend(form: str, series: Series) -> str:
    """A legend with its labels filled in."""
    return re.sub(r"\{\{(\w+)\}\}", lambda label: series.labels.get(label[1], ""), form)


def _ask(prometheus: Prometheus, target: Model, view: View) -> list[Series]:
    expression = view.filled(target["expr"])
    if target["instant"]:
        return prometheus.at(expression, view.end)
    return prometheus.over(expression, view.start, view.end, view.step)


def _numbers(series: Series) -> Series:
    return series._replace(points=[p for p in series.points if math.isfinite(p[1])])
