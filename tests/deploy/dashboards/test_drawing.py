"""The pictures' numbers, words and rows: as Grafana would have them."""

import pytest

from tests.deploy.dashboards.asking import View
from tests.deploy.dashboards.drawing import axes, looks
from tests.deploy.dashboards.drawing.page import page
from tests.deploy.dashboards.prometheus import Series
from tests.deploy.dashboards.reading import NAMES, board, panels

_VIEW = View({}, start=0.0, end=600.0, scrape_seconds=10.0)


@pytest.mark.parametrize(
    ("value", "look", "words"),
    [
        (0.0123, {"unit": "s"}, "12.3\u2009ms"),
        (90, {"unit": "s", "decimals": 1}, "1.5\u2009min"),
        (0, {"unit": "s"}, "0\u2009s"),
        (0.256, {"unit": "percentunit", "decimals": 0}, "26\u2009%"),
        (12345.0, {"unit": "locale"}, "12,345"),
        (3 * 2**30, {"unit": "bytes"}, "3\u2009GiB"),
        (0.41234, {"unit": "none", "decimals": 3}, "0.412"),
    ],
)
def test_a_number_is_shown_with_its_unit(value, look, words):
    assert looks.shown(value, look) == words


def test_an_axis_of_seconds_is_marked_in_whole_minutes():
    assert axes.marks(0, 1800, 4, unit="s") == [0, 600, 1200, 1800]
    assert axes.marks(0, 1800, 4, unit="none") == [0, 500, 1000, 1500, 2000]


def _made_up(panel):
    """A series that rises from 1, for each query; with the labels that a table makes rows of."""
    labels = {"namespace": "research", "run": "raccoon", "eval_set": "val", "pod": "raccoon-0"}
    points = [(10.0 * n, 1.0 + n) for n in range(60)]
    return {
        target["refId"]: [Series(labels, points[:1] if target["instant"] else points)]
        for target in panel["targets"]
    }


@pytest.mark.parametrize("name", NAMES)
def test_every_panel_has_its_place_on_the_page(name):
    made = board(name)
    shown = {panel["id"]: _made_up(panel) for _, panel in panels(made)}
    html, height = page(made, shown, _VIEW, chosen="research")
    for row, panel in panels(made):
        assert (f'"title">{panel["title"]}<' in html) == (not row["collapsed"])
    assert "No data" not in html
    assert height == 44 + 38 * max(p["gridPos"]["y"] + p["gridPos"]["h"] for p in made["panels"])


def test_the_worst_run_stands_first():
    made = board("tandem-fleet")
    (table,) = [panel for _, panel in panels(made) if panel["type"] == "table"]
    values = {"well": 4.0, "broken": 20.0, "unknown": 10.0}
    found = {target["refId"]: [] for target in table["targets"]} | {
        "A": [Series({"namespace": "a", "run": run}, [(0.0, v)]) for run, v in values.items()]
    }
    shown = {panel["id"]: {"A": []} for _, panel in panels(made)} | {table["id"]: found}
    html, _ = page(made, shown, _VIEW, chosen="")
    places = [html.index(f">{run}<") for run in ("broken", "unknown", "well")]
    assert places == sorted(places)
