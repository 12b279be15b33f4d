"""Schema, defaults and README of the charts say the same."""

import json

import pytest
import yaml

from tests.deploy import tables
from tests.deploy.rendering import CHART, MONITORING

pytestmark = pytest.mark.parametrize("chart", [CHART, MONITORING], ids=lambda chart: chart.name)


def _schema(chart):
    return json.loads((chart / "values.schema.json").read_text())


def _defaults(chart):
    return yaml.safe_load((chart / "values.yaml").read_text())


def _objects(node, path=""):
    if isinstance(node, dict):
        if "properties" in node:
            yield path, node
        for name, inner in node.items():
            yield from _objects(inner, f"{path}/{name}")


def test_every_level_refuses_what_it_does_not_know(chart):
    levels = dict(_objects(_schema(chart)))
    assert levels
    assert [
        path for path, node in levels.items() if node.get("additionalProperties") is not False
    ] == []


def test_every_value_has_a_description(chart):
    assert [
        path for path, node in tables.leaves(_schema(chart)) if not node.get("description")
    ] == []


def test_every_default_is_in_the_schema(chart):
    known = {path for path, _ in tables.leaves(_schema(chart))}

    def undescribed(values, prefix=""):
        for name, value in values.items():
            path = f"{prefix}{name}"
            if path in known or not isinstance(value, dict):
                yield from () if path in known else (path,)
            else:
                yield from undescribed(value, f"{path}.")

    assert list(undescribed(_defaults(chart))) == []


def test_every_value_has_a_default_unless_left_to_the_program(chart):
    defaults = _defaults(chart)

    def has(path):
        node = defaults
        for name in path.split("."):
            if not isinstance(node, dict) or name not in node:
                return False
            node = node[name]
        return True

    without = [path for path, _ in tables.leaves(_schema(chart)) if not has(path)]
    assert [path for path in without if ".settings." not in path and ".image." not in path] == []


def test_the_readme_lists_every_value(chart):
    text = (chart / "README.md").read_text()
    assert tables.with_table(text, tables.table(chart)) == text, "python -m tests.deploy.regenerate"
