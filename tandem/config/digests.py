"""Fingerprints of configs, and what differs between two of them."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from typing import Any

from google.protobuf import text_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

_UNSET = "unset"


def config_digest(config: Message) -> str:
    """SHA-256 of the config in hex, the same on every machine.

    Layout, comments and the order of fields don't count. A field that is set to its default does:
    builders may tell it from an unset one.
    """
    return hashlib.sha256(config.SerializeToString(deterministic=True)).hexdigest()


def config_diff(old: Message, new: Message) -> list[str]:
    """What changed, one ``path: old -> new`` a line, in the order of the paths.

    Args:
        old: the config before.
        new: the config after, of the same type.

    Returns:
        Nothing when both are equal.
    """
    before, after = dict(_leaves(old, "")), dict(_leaves(new, ""))
    return [
        f"{path}: {before.get(path, _UNSET)} -> {after.get(path, _UNSET)}"
        for path in sorted(before.keys() | after.keys())
        if before.get(path) != after.get(path)
    ]


def _leaves(message: Message, path: str) -> Iterator[tuple[str, str]]:
    """Every set value as (path, text); a message without any set field counts as a value."""
    fields = message.ListFields()
    if not fields and path:
        yield path, "{}"
    for field, value in fields:
        yield from _field_leaves(field, value, f"{path}.{field.name}" if path else field.name)


def _field_leaves(
    field: FieldDescriptor,
    value: Any,  # noqa: ANN401 - a field's value may be of any type
    path: str,
) -> Iterator[tuple[str, str]]:
    entry = field.message_type
    if field.cpp_type != FieldDescriptor.CPPTYPE_MESSAGE:
        texts = [_text(field, v) for v in value] if field.is_repeated else []
        yield path, f"[{', '.join(texts)}]" if field.is_repeated else _text(field, value)
    elif not field.is_repeated:
        yield from _leaves(value, path)
    elif entry is not None and entry.GetOptions().map_entry:
        for key in value:
            yield from _field_leaves(entry.fields_by_name["value"], value[key], f"{path}[{key!r}]")
    else:
        for index, item in enumerate(value):
            yield from _leaves(item, f"{path}[{index}]")


def _text(field: FieldDescriptor, value: Any) -> str:  # noqa: ANN401 - a scalar of any type
    """A scalar as a text proto has it."""
    out = io.StringIO()
    text_format.PrintFieldValue(field, value, out)
    return out.getvalue()
