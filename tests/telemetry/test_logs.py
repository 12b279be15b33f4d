import io
import json
import logging
import re

import pytest

from tandem.telemetry.logs import LogFields, configure_logging

TOUCHED = ("", "tandem", "services", "absl", "tensorflow", "keras")


@pytest.fixture(autouse=True)
def restore_logging():
    """Leaves the process's logging as it was."""
    loggers = [logging.getLogger(name) for name in TOUCHED]
    before = [(log, log.level, list(log.handlers), log.propagate) for log in loggers]
    yield
    for log, level, handlers, propagate in before:
        log.setLevel(level)
        log.handlers[:] = handlers
        log.propagate = propagate


@pytest.fixture
def stream():
    return io.StringIO()


def test_a_text_line_has_time_level_message_and_fields(stream):
    fields = LogFields(run="runs/a", step=None)
    configure_logging(format="text", fields=fields, stream=stream)
    log = logging.getLogger("services.trainer.app")
    log.info("loss %.2f", 1.5)
    fields.update(step=10)
    log.warning("slow")
    first, second = stream.getvalue().splitlines()
    time = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ"
    assert re.fullmatch(time + r" INFO    loss 1\.50 \[run=runs/a\]", first)
    assert re.fullmatch(time + r" WARNING slow \[run=runs/a step=10\]", second)


def test_a_json_line_is_one_object_with_the_collectors_names(stream):
    configure_logging(format="json", fields=LogFields(run="a", step=3), stream=stream)
    logging.getLogger("tandem.data").error("two\nlines, %s", "ü")
    (line,) = stream.getvalue().splitlines()
    facts = json.loads(line)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", facts.pop("time"))
    assert facts == {
        "run": "a",
        "step": 3,
        "severity": "ERROR",
        "logger": "tandem.data",
        "message": "two\nlines, ü",
    }


@pytest.mark.parametrize("format", ["text", "json"])
def test_an_exception_comes_with_its_traceback(stream, format):
    configure_logging(format=format, fields=LogFields(), stream=stream)
    try:
        raise ValueError("no good")
    except ValueError:
        logging.getLogger("tandem").exception("failed")
    text = stream.getvalue()
    if format == "json":
        text = json.loads(text)["exception"]
    assert "Traceback (most recent call last)" in text
    assert "ValueError: no good" in text


def test_the_level_is_for_our_own_lines_and_libraries_are_heard_from_warnings_upwards(stream):
    configure_logging(format="text", fields=LogFields(), level="debug", stream=stream)
    logging.getLogger("tandem.x").debug("ours")
    logging.getLogger("somelib").info("chatter")
    logging.getLogger("somelib").warning("important")
    assert [line.split()[-1] for line in stream.getvalue().splitlines()] == ["ours", "important"]


def test_at_level_error_nothing_less_is_written(stream):
    configure_logging(format="text", fields=LogFields(), level="error", stream=stream)
    logging.getLogger("tandem").warning("a")
    logging.getLogger("somelib").warning("b")
    assert stream.getvalue() == ""


def test_the_last_configuration_counts_and_no_line_is_written_twice(stream):
    old = io.StringIO()
    configure_logging(format="text", fields=LogFields(), stream=old)
    configure_logging(format="text", fields=LogFields(), stream=stream)
    logging.getLogger("tandem").info("once")
    assert old.getvalue() == ""
    assert stream.getvalue().count("once") == 1


def test_other_handlers_of_the_root_logger_stay(stream):
    theirs = logging.StreamHandler(io.StringIO())
    logging.getLogger().addHandler(theirs)
    configure_logging(format="text", fields=LogFields(), stream=stream)
    assert theirs in logging.getLogger().handlers


@pytest.mark.parametrize("name", ["absl", "tensorflow", "keras"])
def test_a_library_with_a_handler_of_its_own_does_not_write_twice(stream, name):
    own = io.StringIO()
    library = logging.getLogger(name)
    library.addHandler(logging.StreamHandler(own))
    library.propagate = False
    configure_logging(format="text", fields=LogFields(), stream=stream)
    library.warning("beware")
    assert own.getvalue() == ""
    assert stream.getvalue().count("beware") == 1
