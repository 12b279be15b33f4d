"""Label maps: which class names and ids the records speak of.

A label map is a text proto (``item { name: "cat" id: 1 }``), or the same message in binary. Ids run
from 1; 0 is left to the background. They may have gaps and come in any order.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from google.protobuf.message import DecodeError

from tandem.config.files import decode_text, read_bytes
from tandem.config.text import parse_text
from tandem.config.tokens import walk
from tandem.errors import LabelMapError
from tandem.protos.string_int_label_map_pb2 import StringIntLabelMap, StringIntLabelMapItem

_BACKGROUND = "background"

_logger = logging.getLogger(__name__)


class Category(NamedTuple):
    """One class of objects."""

    id: int
    """1 or more."""
    name: str
    """What records call it; empty if the label map has a display name only."""
    display_name: str
    """What people call it; empty if the label map has none."""

    @property
    def label(self) -> str:
        """What to show: the display name where there is one."""
        return self.display_name or self.name


@dataclass(frozen=True)
class LabelMap:
    """The classes of a data set."""

    items: tuple[Category, ...]
    """In the file's order, the background left out. Of several items with one id, the first."""
    ids_by_name: Mapping[str, int]
    """Names and display names, to find the id of a record's text. Has the background too, as 0."""
    max_id: int
    """The highest id; the model needs as many classes."""


def load_label_map(path: str) -> LabelMap:
    """Reads a label map, text or binary.

    Raises:
        LabelMapError: it can't be read or parsed, has no classes, or has an id that can't be used.
    """
    data = read_bytes(path, error_class=LabelMapError)
    message, lines = _parse(data, path)
    for index, item in enumerate(message.item):
        where = f"{path}:{lines[index]}: item[{index}]" if lines else f"{path}: item[{index}]"
        _check_item(item, where)
    first_by_id: dict[int, Category] = {}
    for item in message.item:
        if item.id > 0:
            first_by_id.setdefault(item.id, Category(item.id, item.name, item.display_name))
    if not first_by_id:
        raise LabelMapError(
            f"{path}: the label map has no classes; expected `item {{ ... }}` blocks"
        )
    _warn_of_shared_names(message.item, path)
    return LabelMap(
        items=tuple(first_by_id.values()),
        ids_by_name=MappingProxyType(_ids_by_name(message.item)),
        max_id=max(first_by_id),
    )


def check_num_classes(
    label_map: LabelMap, num_classes: int, *, path: str, field: str = "num_classes"
) -> None:
    """Compares a label map with the model.

    Args:
        label_map: the label map.
        num_classes: what the model is built for.
        path: the label map's file, for the message.
        field: the config's field that holds ``num_classes``, for the message.

    Raises:
        LabelMapError: the highest id isn't the number of classes.
    """
    if label_map.max_id == num_classes:
        return
    highest = next(c for c in label_map.items if c.id == label_map.max_id)
    raise LabelMapError(
        f"{path}: the highest id is {label_map.max_id} ({highest.label!r}), but {field} is "
        f"{num_classes}; set {field} to {label_map.max_id} in the config, or give the label map "
        f"that belongs to {num_classes} classes"
    )


def _parse(data: bytes, path: str) -> tuple[StringIntLabelMap, list[int]]:
    """The message, and the line of each item (none when it's binary)."""
    try:
        text = decode_text(data, path, error_class=LabelMapError)
        message = parse_text(text, StringIntLabelMap, source=path, error_class=LabelMapError)
    except LabelMapError:
        binary = _parse_binary(data)
        if binary is None:
            raise
        return binary, []
    return message, [
        token.line
        for token in walk(text, StringIntLabelMap.DESCRIPTOR)
        if token.role == "mark" and token.text in "{<" and token.field_path == "item"
    ]


def _parse_binary(data: bytes) -> StringIntLabelMap | None:
    """The binary message; None if the bytes aren't one.

    Many a broken text happens to be a valid message of nothing but unknown fields, hence the
    comparison with what the known fields alone take.
    """
    message = StringIntLabelMap()
    try:
        message.ParseFromString(data)
    except DecodeError:
        return None
    known = StringIntLabelMap()
    known.CopyFrom(message)
    known.DiscardUnknownFields()
    return message if message.item and known.ByteSize() == message.ByteSize() else None


def _check_item(item: StringIntLabelMapItem, where: str) -> None:
    """Refuses an item that no object could belong to."""
    label = item.display_name or item.name
    if not label:
        raise LabelMapError(f"{where} has neither a name nor a display_name")
    if item.id < 0:
        raise LabelMapError(f"{where} ({label!r}): expected an id of 1 or more, found {item.id}")
    if item.id == 0 and _BACKGROUND not in (item.name, item.display_name):
        found = "0" if item.HasField("id") else "none"
        raise LabelMapError(
            f"{where} ({label!r}): expected an id of 1 or more, found {found}; "
            f"0 is kept for the name {_BACKGROUND!r}"
        )
    keypoint_ids = [keypoint.id for keypoint in item.keypoints]
    for keypoint_id in keypoint_ids:
        if keypoint_ids.count(keypoint_id) > 1:
            raise LabelMapError(f"{where} ({label!r}): two keypoints have the id {keypoint_id}")


def _ids_by_name(items: Iterable[StringIntLabelMapItem]) -> dict[str, int]:
    """Name to id, as the Object Detection API looks it up.

    Names and display names are two tables, in each of which the last item of a name wins. A text
    found in both has the higher id.
    """
    by_name: dict[str, int] = {}
    by_display_name: dict[str, int] = {}
    for item in items:
        if item.name:
            by_name[item.name] = item.id
        if item.display_name:
            by_display_name[item.display_name] = item.id
    return {
        name: max(by_name.get(name, -1), by_display_name.get(name, -1))
        for name in [*by_name, *by_display_name]
    }


def _warn_of_shared_names(items: Iterable[StringIntLabelMapItem], path: str) -> None:
    """Says which classes records can't name, because a later item has the same name."""
    ids: dict[str, int] = {}
    for item in items:
        earlier = ids.get(item.name, item.id)
        if item.name and earlier != item.id:
            _logger.warning(
                "%s: %r is the name of id %d and of id %d; records of that name get id %d",
                *(path, item.name, earlier, item.id, item.id),
            )
        ids[item.name] = item.id
