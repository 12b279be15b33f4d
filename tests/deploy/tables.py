"""The table of values in a chart's README, made of its schema and its defaults."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

_BEGIN = "<!-- values: made by python -m tests.deploy.regenerate -->"
_END = "<!-- end of values -->"


def update(chart: Path) -> None:
    """Puts the present table into the chart's README."""
    readme = chart / "README.md"
    readme.write_text(with_table(readme.read_text(), table(chart)))


def with_table(text: str, made: str) -> str:
    """A README with its table replaced."""
    before, _, rest = text.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    assert end, f"the README lacks {_BEGIN} and {_END}"
    return f"{before}{_BEGIN}\n{made}\n{_END}{after}"


def table(chart: Path) -> str:
    """One row for each value, by sections."""
    schema = json.loads((chart / "values.schema.json").read_text())
    defaults = yaml.safe_load((chart / "values.yaml").read_text()) or {}
    rows = ["| value | default | |", "|---|---|---|"]
    for path, node in leaves(schema):
        description = node.get("description", "").replace("|", "\\|")
        rows.append(f"| `{path}` | {_shown(_at(defaults, path))} | {description} |")
    return "\n".join(rows)


def leaves(schema: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """All values that can be set, by dotted path, without Helm's own `global`."""
    for name, node in schema["properties"].items():
        path = f"{prefix}{name}"
        if path == "global":
            continue
        if "properties" in node:
            yield from leaves(node, f"{path}.")
        else:
            yield path, node


def _at(values: Any, path: str) -> Any:
    for name in path.split("."):
        if not isinstance(values, dict) or name not in values:
            return None
        values = values[name]
    return values


def _shown(value: Any) -> str:
    if value is None or value == "":
        return ""
    return f"`{json.dumps(value) if isinstance(value, dict | list | bool) else value}`"
