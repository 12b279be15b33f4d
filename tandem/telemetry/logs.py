"""Log lines for people (text) and for collectors (JSON), each with the run and the step."""

from __future__ import annotations

import json
import logging
import sys
import threading
from datetime import datetime, timezone
from typing import Literal, TextIO

LogFormat = Literal["text", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]
Field = str | int | float | None

_LEVELS: dict[LogLevel, int] = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
_HANDLER_NAME = "tandem"
_OWN_LOGGERS = ("tandem", "services")
# They bring handlers of their own, and so would write each line twice.
_FOREIGN_LOGGERS = ("absl", "tensorflow", "keras")


class LogFields:
    """What every line carries besides its message: the run, the step. Any thread may change it."""

    def __init__(self, **fields: Field) -> None:
        self._lock = threading.Lock()
        self._fields = dict(fields)

    def update(self, **fields: Field) -> None:
        """Sets fields; None takes one away."""
        with self._lock:
            self._fields.update(fields)

    def snapshot(self) -> dict[str, Field]:
        """The fields that have a value."""
        with self._lock:
            return {name: value for name, value in self._fields.items() if value is not None}


def configure_logging(
    *,
    format: LogFormat,
    fields: LogFields,
    level: LogLevel = "info",
    stream: TextIO | None = None,
) -> None:
    """Sets up logging for the process; again and again if need be, the last call counts.

    The level is for Tandem's own lines; libraries are heard from warnings upwards.

    Args:
        format: ``text`` or ``json``.
        fields: written on every line.
        level: the least severe of Tandem's lines to write.
        stream: where to write; standard error by default.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.set_name(_HANDLER_NAME)
    handler.setFormatter(_FORMATTERS[format](fields))
    root = logging.getLogger()
    for old in [h for h in root.handlers if h.get_name() == _HANDLER_NAME]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(max(_LEVELS[level], logging.WARNING))
    for name in _OWN_LOGGERS:
        logging.getLogger(name).setLevel(_LEVELS[level])
    for name in _FOREIGN_LOGGERS:
        _tame(logging.getLogger(name))


class _TextFormatter(logging.Formatter):
    """``2026-03-01 12:00:00Z INFO    message [run=a step=10]``; then a traceback, if any."""

    def __init__(self, fields: LogFields) -> None:
        super().__init__()
        self._fields = fields

    def format(self, record: logging.LogRecord) -> str:
        time = _utc(record).strftime("%Y-%m-%d %H:%M:%SZ")
        fields = " ".join(f"{name}={value}" for name, value in self._fields.snapshot().items())
        suffix = f" [{fields}]" if fields else ""
        line = f"{time} {record.levelname:7} {record.getMessage()}{suffix}"
        return "\n".join([line, *_traceback(self, record)])


class _JsonFormatter(logging.Formatter):
    """One object a line, under the names that Google Cloud's collector looks for."""

    def __init__(self, fields: LogFields) -> None:
        super().__init__()
        self._fields = fields

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Field] = {
            **self._fields.snapshot(),
            "time": _utc(record).isoformat(timespec="milliseconds"),
            "severity": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        traceback = _traceback(self, record)
        if traceback:
            line["exception"] = "\n".join(traceback)
        return json.dumps(line, ensure_ascii=False)


_FORMATTERS: dict[LogFormat, type[_TextFormatter] | type[_JsonFormatter]] = {
    "text": _TextFormatter,
    "json": _JsonFormatter,
}


def _tame(logger: logging.Logger) -> None:
    """Leaves a library's lines to the root logger's handler."""
    for handler in list(logger.handlers):
        logger.removeHandler(handler)
    logger.propagate = True


def _utc(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, tz=timezone.utc)


def _traceback(formatter: logging.Formatter, record: logging.LogRecord) -> list[str]:
    """The traceback and the stack that come with a record."""
    parts = [formatter.formatException(record.exc_info)] if record.exc_info else []
    return [*parts, formatter.formatStack(record.stack_info)] if record.stack_info else parts
