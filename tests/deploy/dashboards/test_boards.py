"""Both dashboards as they are kept: made by the builder, readable, without holes."""

import pytest

from deploy.dashboards.__main__ import boards, text_of
from tests.deploy.dashboards.reading import FOLDER, NAMES, board, panels

_UNITS = {"short", "none", "s", "percentunit", "locale", "bytes", "reqps"}


def test_the_kept_files_are_what_the_builder_makes():
    """Else: python -m deploy.dashboards."""
    assert {path.name for path in FOLDER.iterdir()} == {f"{name}.json" for name in NAMES}
    for name, made in boards().items():
        assert (FOLDER / name).read_text() == text_of(made), name


@pytest.mark.parametrize("name", NAMES)
def test_the_uid_by_which_links_know_it_is_its_name(name):
    assert board(name)["uid"] == name


@pytest.mark.parametrize("name", NAMES)
def test_panels_fill_the_page_and_lie_over_no_other(name):
    made = board(name)
    for row in made["panels"]:
        assert row["type"] != "row" or row["collapsed"] == bool(row["panels"])
    places = [model["gridPos"] for model in made["panels"]]
    places += [inner["gridPos"] for model in made["panels"] for inner in model.get("panels", [])]
    taken = [
        (x, y)
        for place in places
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(taken) == len(set(taken))
    height = max(y for _, y in taken) + 1
    assert set(taken) == {(x, y) for x in range(24) for y in range(height)}


@pytest.mark.parametrize("name", NAMES)
def test_every_panel_says_what_to_read_out_of_it(name):
    titles = []
    for _, panel in panels(board(name)):
        titles.append(panel["title"])
        assert len(panel["description"]) > 30, panel["title"]
        assert panel["fieldConfig"]["defaults"].get("unit", "none") in _UNITS, panel["title"]
    assert len(titles) == len(set(titles))


@pytest.mark.parametrize("name", NAMES)
def test_panels_and_their_queries_have_names_of_their_own(name):
    made = board(name)
    ids = [panel["id"] for panel in made["panels"]] + [
        inner["id"] for panel in made["panels"] for inner in panel.get("panels", [])
    ]
    assert len(ids) == len(set(ids))
    for _, panel in panels(made):
        refs = [target["refId"] for target in panel["targets"]]
        assert refs == sorted(set(refs)), panel["title"]


def test_a_row_of_the_fleet_leads_to_its_run():
    (table,) = [panel for _, panel in panels(board("tandem-fleet")) if panel["type"] == "table"]
    urls = [
        link["url"]
        for override in table["fieldConfig"]["overrides"]
        for given in override["properties"]
        if given["id"] == "links"
        for link in given["value"]
    ]
    variables = {variable["name"] for variable in board("tandem-run")["templating"]["list"]}
    assert len(urls) == 3
    for url in urls:
        path, _, query = url.partition("?")
        assert path == "/d/tandem-run"
        given = dict(part.partition("=")[::2] for part in query.split("&"))
        assert given["var-namespace"] == "${__data.fields.Namespace}"
        assert given["var-run"] == "${__data.fields.Run}"
        chosen = {name.removeprefix("var-") for name in given if name.startswith("var-")}
        assert chosen <= variables
