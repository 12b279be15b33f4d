"""Text protos, with errors that say where, what was found and what would have been right."""

from __future__ import annotations

import re
from typing import TypeVar, cast

from google.protobuf import text_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from tandem.config.tokens import Token, walk
from tandem.errors import ConfigError, InputError, nearest_names

MessageT = TypeVar("MessageT", bound=Message)

_EXPECTED = {
    FieldDescriptor.CPPTYPE_STRING: "text in quotes",
    FieldDescriptor.CPPTYPE_BOOL: "true or false",
    FieldDescriptor.CPPTYPE_FLOAT: "a number",
    FieldDescriptor.CPPTYPE_DOUBLE: "a number",
    FieldDescriptor.CPPTYPE_INT32: "a whole number from -2147483648 to 2147483647",
    FieldDescriptor.CPPTYPE_UINT32: "a whole number from 0 to 4294967295",
    FieldDescriptor.CPPTYPE_MESSAGE: "a block in { }",
}
# Protobuf puts "line:column : 'the whole line': " before its reason.
_REASON_PREFIX = re.compile(r"^\d+:\d+ : ('.*': )?", re.DOTALL)


_MOST_DIGITS = 400


def parse_text(
    text: str,
    message_class: type[MessageT],
    *,
    source: str,
    error_class: type[InputError] = ConfigError,
) -> MessageT:
    """Parses a text proto.

    Args:
        text: the text proto.
        message_class: what it is a text of.
        source: name of the file or flag that it comes from, for messages.
        error_class: what to raise when it's wrong.

    Returns:
        The message.

    Raises:
        error_class: with ``source:line:column``, what was found, and the nearest right names.
    """
    message = message_class()
    try:
        text_format.Parse(text, message)
    except text_format.ParseError as error:
        where = _explain(text, cast("Descriptor", message.DESCRIPTOR), error)
        raise error_class(f"{source}:{where}") from error
    return message


def _explain(text: str, descriptor: Descriptor, error: text_format.ParseError) -> str:
    """``line:column: what is wrong``."""
    position = (error.GetLine() or 1, error.GetColumn() or 1)
    tokens = list(walk(text, descriptor))
    token = next((t for t in tokens if (t.line, t.column) >= position), tokens[-1])
    return f"{position[0]}:{position[1]}: {_reason(token, tokens, error)}"


def _reason(token: Token, tokens: list[Token], error: text_format.ParseError) -> str:
    """The first explanation that fits the token; protobuf's own words when none does."""
    if token.role == "extension" or (token.text == "]" and not token.field):
        return (
            f"[{token.field_name}] is an extension{_within(token)}; Tandem reads the fields of "
            "object_detection.protos only, so remove it"
        )
    if (token.role == "name" and not token.text.isidentifier()) or _is_nameless(token):
        return f"expected a field's name{_within(token)}, found {token.text!r}"
    if token.role == "name" and token.message and not token.field:
        names = token.message.fields_by_name
        return f"unknown field '{token.text}'{_within(token)}" + (
            nearest_names(token.text, names) or f"; its fields are {', '.join(sorted(names))}"
        )
    clash = _clash(token, tokens)
    if clash:
        return clash
    if token.text[:1] in ("'", '"') and token.text[-1:] != token.text[0]:
        return f"{token.field_path}: the string {token.text} has no closing quote on its line"
    if token.role != "end" and token.field and not _fits(token):
        return f"{token.field_path}: expected {_expected(token.field)}, found {token.text}"
    end = tokens[-1]
    if token in tokens[-2:] and end.path:
        return f"the text ends before '{end.path}' (begun on line {end.opened_line}) is closed"
    reason = _REASON_PREFIX.sub("", str(error)).rstrip(".")
    return f"{token.field_path}: {reason}" if token.field_path else reason


def _is_nameless(token: Token) -> bool:
    return token.role == "mark" and not token.field_name and token.text != "]"


def _within(token: Token) -> str:
    name = token.message.name if token.message else "a field that isn't known either"
    return f" in {token.path} ({name})" if token.path else f" at the top level ({name})"


def _clash(token: Token, tokens: list[Token]) -> str:
    """Says that a field which may stand once stands twice, or two of a oneof stand together."""
    names = [t for t in tokens if t.role == "name" and (t.line, t.column) <= token[1:3]]
    last = names[-1] if names else None
    if last is None or last.earlier is None or last.field_path != token.field_path:
        return ""
    if last.earlier.text == last.text:
        return (
            f"'{last.text}' stands twice{_within(last)}, first on line {last.earlier.line}; "
            "it can have one value only"
        )
    return (
        f"'{last.text}' stands beside '{last.earlier.text}' (line {last.earlier.line})"
        f"{_within(last)}; only one of them can be given"
    )


def _fits(token: Token) -> bool:
    """Whether a token has the looks of its field's value; marks do unless they open a block."""
    text, field = token.text, token.field
    if field is None or token.role == "name":
        return True
    kind = field.cpp_type
    if token.role == "mark":
        return text not in "{<" or kind == FieldDescriptor.CPPTYPE_MESSAGE
    if kind == FieldDescriptor.CPPTYPE_STRING:
        return text[0] in "\"'"
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        return text in ("true", "false", "True", "False", "t", "f", "0", "1")
    if field.enum_type is not None:
        return text in field.enum_type.values_by_name
    if kind == FieldDescriptor.CPPTYPE_MESSAGE:
        return False
    return re.fullmatch(_number(field), text) is not None and _in_range(text, kind)


def _number(field: FieldDescriptor) -> str:
    if field.cpp_type in (FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE):
        return r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?f?|[-+]?(inf|infinity|nan)f?"
    return r"[-+]?\d+"


def _in_range(text: str, kind: int) -> bool:
    if len(text) > _MOST_DIGITS:  # longer than any number, and than Python converts
        return False
    if kind == FieldDescriptor.CPPTYPE_INT32:
        return -(2**31) <= int(text) < 2**31
    if kind == FieldDescriptor.CPPTYPE_UINT32:
        return 0 <= int(text) < 2**32
    return True


def _expected(field: FieldDescriptor) -> str:
    if field.enum_type is not None:
        return "one of " + ", ".join(v.name for v in field.enum_type.values)
    return _EXPECTED.get(field.cpp_type, "another value")
