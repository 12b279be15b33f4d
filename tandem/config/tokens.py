"""Where the fields of a text proto stand: what protobuf's own parser doesn't tell.

Protobuf reports an error by line and column only. Walking over the same text, this module knows
which message and which field that place belongs to. It accepts any text, also a broken one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from google.protobuf.descriptor import Descriptor, FieldDescriptor

_TOKEN = re.compile(
    r"""(?P<space>\s+|\#[^\n]*)
    |(?P<string>"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?)
    |(?P<word>[\w.+-]+)
    |(?P<mark>.)""",
    re.VERBOSE | re.DOTALL,
)
_CLOSES = {"{": "}", "<": ">"}

Role = Literal["name", "extension", "value", "mark", "end"]


class Token(NamedTuple):
    """One word, string or mark of a text proto, and what it belongs to."""

    text: str
    line: int
    """Counted from 1, as `column` is."""
    column: int
    role: Role
    message: Descriptor | None
    """The innermost message around it; None within a field that the schema doesn't know."""
    path: str
    """Of that message: ``model.ssd.loss``; empty at the top."""
    field_name: str
    """The field that it names or is a value of; empty when it's neither."""
    opened_line: int
    """The line that this message begins on; 0 at the top."""
    earlier: Token | None
    """For a name: the same field, or another of its oneof, earlier in the same message."""

    @property
    def field(self) -> FieldDescriptor | None:
        """The field that it names or is a value of, if the schema has it."""
        if self.message is None:
            return None
        return self.message.fields_by_name.get(self.field_name)

    @property
    def field_path(self) -> str:
        """``model.ssd.loss.classification_weight``."""
        return ".".join(part for part in (self.path, self.field_name) if part)


@dataclass
class _Block:
    """A message that is being walked through."""

    message: Descriptor | None
    path: str
    opened_by: str = ""
    opened_line: int = 0
    field_name: str = ""
    expects: Role = "name"
    in_list: bool = False
    counts: dict[str, int] = field(default_factory=dict)
    names: dict[str, Token] = field(default_factory=dict)


def walk(text: str, message: Descriptor) -> Iterator[Token]:
    """Yields every token of a text proto of type ``message``; at last one of role ``end``."""
    blocks = [_Block(message, "")]
    line, line_start = 1, 0
    for match in _TOKEN.finditer(text):
        if match.lastgroup != "space":
            column = match.start() - line_start + 1
            yield _step(blocks, match.group(), line, column)
        newlines = match.group().count("\n")
        if newlines:
            line += newlines
            line_start = match.start() + match.group().rindex("\n") + 1
    yield _token(blocks[-1], "", line, len(text) - line_start + 1, role="end")


def _step(blocks: list[_Block], text: str, line: int, column: int) -> Token:
    """Describes one token and moves on; ``blocks`` is the stack of open messages."""
    block = blocks[-1]
    if text in _CLOSES:
        token = _token(block, text, line, column, role="mark")
        blocks.append(_open(block, text, line))
        return token
    if text == _CLOSES.get(block.opened_by):
        token = _token(block, text, line, column, role="mark")
        blocks.pop()
        _after_value(blocks[-1])
        return token
    if text in ":,;[]":
        return _mark(block, text, line, column)
    if block.expects == "value" or text[0] in "\"'":  # strings in a row are one value
        token = _token(block, text, line, column, role="value")
        _after_value(block)
        return token
    return _name(block, text, line, column)


def _mark(block: _Block, text: str, line: int, column: int) -> Token:
    if text == "[" and block.expects == "value":
        block.in_list = True
    elif text == "[":
        block.expects = "extension"
        block.field_name = ""
    elif text == "]" and block.in_list:
        block.in_list = False
        block.expects = "name"
    elif text == "]":
        block.expects = "value"
    return _token(block, text, line, column, role="mark")


def _name(block: _Block, text: str, line: int, column: int) -> Token:
    """A field's name, or a part of an extension's in brackets."""
    if block.expects == "extension":
        block.field_name += text
        return _token(block, text, line, column, role="extension")
    block.field_name = text
    block.expects = "value"
    token = _token(block, text, line, column, role="name")
    key = _singular_key(token.field)
    if key:
        token = token._replace(earlier=block.names.get(key))
        block.names.setdefault(key, token)
    return token


def _singular_key(known: FieldDescriptor | None) -> str:
    """What may stand once in a message: a singular field, or one member of a oneof."""
    if known is None or known.is_repeated:
        return ""
    oneof = known.containing_oneof
    return known.name if oneof is None else oneof.name


def _after_value(block: _Block) -> None:
    """In a list the next token is a value again, else a name."""
    block.expects = "value" if block.in_list else "name"


def _open(block: _Block, mark: str, line: int) -> _Block:
    """The message that ``mark`` opens within ``block``."""
    name = block.field_name or "?"
    known = block.message.fields_by_name.get(name) if block.message else None
    if known is not None and known.is_repeated:
        index = block.counts.get(name, 0)
        block.counts[name] = index + 1
        name = f"{name}[{index}]"
    path = f"{block.path}.{name}" if block.path else name
    return _Block(known.message_type if known else None, path, mark, line)


def _token(block: _Block, text: str, line: int, column: int, *, role: Role) -> Token:
    name = "" if role == "end" else block.field_name
    return Token(text, line, column, role, block.message, block.path, name, block.opened_line, None)
