"""What a request to the JSON API is about: the object, its preconditions, the bytes it carries."""

from __future__ import annotations

import json
import re
from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

_OBJECT_PATH = re.compile(
    r"(?:/upload|/download)?/storage/v1/b/([^/]+)/o(?:/([^/]+))?(?:/compose)?"
)
_CONTENT_RANGE = re.compile(r"bytes (?:\*|(\d+)-(\d+))/(\d+|\*)")


class Target(NamedTuple):
    """An object that a request is about, with the conditions it states."""

    bucket: str
    name: str
    conditions: dict[str, int]


class Chunk(NamedTuple):
    """A `Content-Range`: the first byte, and whether the object ends here.

    A question for the state of an upload (`bytes */100`) has no bytes and ends nothing.
    """

    start: int
    is_last: bool


class Answer(NamedTuple):
    """A response."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes


def query_of(path: str) -> dict[str, str]:
    """The query's values by key."""
    return {key: values[0] for key, values in parse_qs(urlsplit(path).query).items()}


def target_of(path: str, content_type: str, body: bytes) -> Target | None:
    """The object that a request is about; None for a listing or a bucket."""
    query = query_of(path)
    match = _OBJECT_PATH.fullmatch(urlsplit(path).path)
    if match is None:
        return None
    name = unquote(match[2]) if match[2] else query.get("name") or _name_in(body, content_type)
    if not name:
        return None
    conditions = {key: int(value) for key, value in query.items() if key.startswith("if")}
    return Target(match[1], name, conditions)


def _name_in(body: bytes, content_type: str) -> str | None:
    """A multipart upload names its object in the first part, a resumable one in the body."""
    if not body:
        return None
    text = body if "json" in content_type else body.partition(b"\r\n\r\n")[2]
    metadata, _ = json.JSONDecoder().raw_decode(text[:100_000].decode("utf-8", "replace").lstrip())
    return metadata.get("name")


def chunk_of(content_range: str | None) -> Chunk:
    """Which bytes a request of an upload session carries; without the header, all of them."""
    match = _CONTENT_RANGE.fullmatch(content_range or "")
    if match is None:
        return Chunk(0, is_last=True)
    if match[1] is None:
        return Chunk(0, is_last=match[3] == "0")
    return Chunk(int(match[1]), is_last=match[3] == str(int(match[2]) + 1))
