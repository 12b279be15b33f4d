"""What a metric is, and how one is made in a registry.

What isn't known yet is NaN (a gauge without labels) or absent (one with), never a 0 or -1 that a
chart would draw. Counters and histograms whose labels have known values begin with all of them at
0, so that a first error is an increase.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Literal, NamedTuple

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

Kind = Literal["gauge", "counter", "histogram"]


class Label(NamedTuple):
    """A label.

    Attributes:
        name: its name.
        values: all that it can have; empty: `what` says which.
        what: what the values are, where they are the config's or the process's.
    """

    name: str
    values: tuple[str, ...] = ()
    what: str = ""


class Definition(NamedTuple):
    """A metric.

    Attributes:
        name: `tandem_<thing>_<unit>[_total]`.
        kind: gauge, counter or histogram.
        unit: of its value.
        help: what it is; one sentence, which `/metrics` shows too.
        use: what it is for.
        labels: its labels.
        buckets: upper bounds, of a histogram.
    """

    name: str
    kind: Kind
    unit: str
    help: str
    use: str
    labels: tuple[Label, ...] = ()
    buckets: tuple[float, ...] = ()

    @property
    def label_names(self) -> tuple[str, ...]:
        """Names of the labels."""
        return tuple(label.name for label in self.labels)


class Made:
    """Makes metrics by their definitions.

    Args:
        registry: they are registered in.
        definitions: of all of them.
    """

    def __init__(self, registry: CollectorRegistry, definitions: Iterable[Definition]) -> None:
        self._registry = registry
        self._definitions = {definition.name: definition for definition in definitions}

    def gauge(self, name: str) -> Gauge:
        """A gauge; one without labels is NaN until it is set, one with labels is absent."""
        found = self._find(name, "gauge")
        made = Gauge(name, found.help, found.label_names, registry=self._registry)
        if not found.labels:
            made.set(math.nan)
        return made

    def counter(self, name: str) -> Counter:
        """A counter."""
        found = self._find(name, "counter")
        made = Counter(name, found.help, found.label_names, registry=self._registry)
        for values in _known_values(found):
            made.labels(*values)
        return made

    def running_counter(self, name: str, value: Callable[[], float]) -> None:
        """A counter that is asked for its value whenever someone looks."""
        self._registry.register(_Running(self._find(name, "counter"), value))

    def histogram(self, name: str) -> Histogram:
        """A histogram."""
        found = self._find(name, "histogram")
        made = Histogram(
            name, found.help, found.label_names, buckets=found.buckets, registry=self._registry
        )
        for values in _known_values(found):
            made.labels(*values)
        return made

    def _find(self, name: str, kind: Kind) -> Definition:
        found = self._definitions[name]
        assert found.kind == kind, f"{name} is a {found.kind}"
        return found


def choose(gauge: Gauge, chosen: str | None, states: tuple[str, ...]) -> None:
    """1 for the chosen state and 0 for the others, so that each has a line of its own."""
    for state in states:
        gauge.labels(state).set(1 if state == chosen else 0)


def _known_values(definition: Definition) -> Iterator[tuple[str, ...]]:
    """All combinations of label values; none where a label's values are known only later."""
    if definition.labels:
        yield from itertools.product(*(label.values for label in definition.labels))


class _Running(Collector):
    def __init__(self, definition: Definition, value: Callable[[], float]) -> None:
        self._definition = definition
        self._value = value

    def collect(self) -> Iterator[Metric]:
        yield CounterMetricFamily(self._definition.name, self._definition.help, value=self._value())
