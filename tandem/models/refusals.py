"""Refuses config fields that a builder doesn't honour, so that nothing is accepted and ignored."""

from __future__ import annotations

from collections.abc import Iterable

from google.protobuf.message import Message

from tandem.errors import ConfigError


def refuse_other_fields(message: Message, *, path: str, known: Iterable[str]) -> None:
    """Refuse fields that are set to something other than their default and not known.

    Args:
        message: part of a pipeline.config.
        path: of the message in it, for the error.
        known: fields that the caller honours, or that can't make a difference.

    Raises:
        ConfigError: naming the field, its value and its default.
    """
    honoured = frozenset(known)
    for field, value in message.ListFields():
        if field.name in honoured:
            continue
        if isinstance(value, Message):
            raise ConfigError(f"{path}.{field.name}: not supported by this version; remove it")
        default = getattr(type(message)(), field.name)
        if value == default:
            continue
        raise ConfigError(
            f"{path}.{field.name}: {_show(value)} is not supported by this version; "
            f"remove it or set it to {_show(default)}"
        )


def unsupported_value(path: str, value: str, supported: Iterable[str]) -> ConfigError:
    """The error for a value that is none of those supported."""
    names = sorted(supported)
    return ConfigError(
        f"{path}: {value or 'nothing set'!r} is not supported by this version; supported are "
        f"{', '.join(names)}"
    )


def _show(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)
