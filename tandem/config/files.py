"""Files that a config names: reading small ones, and finding record files by pattern.

A file that can't be read is the user's mistake and so an InputError of the caller's choice.
"""

from __future__ import annotations

import glob
import os
from pathlib import Path

from tandem.errors import ConfigError, DataError, InputError

_PLACEHOLDER = "PATH_TO_BE"  # also in the misspelt PATH_TO_BEE_CONFIGURED of a zoo config


def read_text(path: str, *, error_class: type[InputError] = ConfigError) -> str:
    """Reads a UTF-8 file.

    Raises:
        error_class: it can't be read, or it's no UTF-8 text.
    """
    return decode_text(read_bytes(path, error_class=error_class), path, error_class=error_class)


def decode_text(data: bytes, path: str, *, error_class: type[InputError] = ConfigError) -> str:
    """Decodes UTF-8; a byte-order mark, which some Windows editors write, is dropped."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise error_class(
            f"{path}:{line}: expected UTF-8 text, found byte 0x{data[error.start]:02x}"
        ) from error


def read_bytes(path: str, *, error_class: type[InputError] = ConfigError) -> bytes:
    """Reads a whole file.

    Raises:
        error_class: it can't be read.
    """
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise error_class(f"{path}: can't be read: {reason_of(error)}") from error


def reason_of(error: OSError) -> str:
    """The system's words without its numbers: ``No such file or directory``."""
    return error.strerror or type(error).__name__


def check_path(path: str, *, field: str) -> None:
    """Refuses what can't be a path of a file here.

    Args:
        path: a path or pattern of a config.
        field: the config's field that holds it, for the message.

    Raises:
        ConfigError: it's empty, a placeholder of a sample config, or not on this machine.
    """
    if not path:
        raise ConfigError(f"{field}: expected a path, found nothing")
    if _PLACEHOLDER in path:
        raise ConfigError(
            f"{field}: {path!r} is still the placeholder of the sample config; "
            "put the path of your own file there"
        )
    if "://" in path:
        raise ConfigError(
            f"{field}: {path!r} isn't a local path; this version reads local files only, "
            "so copy the file or mount its folder"
        )


def find_records(pattern: str, *, field: str) -> tuple[str, ...]:
    """The record files that a path or pattern names, sorted.

    Args:
        pattern: a path, or a pattern with ``*``, ``?`` or ``[...]``, relative to the working
            folder. A file of exactly this name wins over what it would match.
        field: the config's field that holds it, for the message.

    Returns:
        At least one file; all exist and none is empty.

    Raises:
        ConfigError: it's no local path.
        DataError: it matches nothing, or a file is empty or can't be read.
    """
    check_path(pattern, field=field)
    paths = (pattern,) if os.path.exists(pattern) else tuple(sorted(glob.glob(pattern)))
    if not paths and glob.has_magic(pattern):
        raise DataError(f"{field}: no file matches {pattern!r} in {os.getcwd()}")
    if not paths:
        raise DataError(f"{field}: {pattern!r} doesn't exist (looked from {os.getcwd()})")
    for path in paths:
        _check_record_file(path, field=field)
    return paths


def _check_record_file(path: str, *, field: str) -> None:
    if os.path.isdir(path):
        raise DataError(f"{field}: {path!r} is a folder; name its files, such as '{path}/*.record'")
    try:
        with open(path, "rb") as file:
            first = file.read(1)
    except OSError as error:
        raise DataError(f"{field}: {path!r} can't be read: {reason_of(error)}") from error
    if not first:
        raise DataError(f"{field}: {path!r} is empty; a record file has at least one record")
