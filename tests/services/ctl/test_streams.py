"""Output that nobody reads, or that can't be shown as it is."""

import os
import subprocess
import sys

import pytest

from services.ctl.streams import NOBODY_READS, escaped, escaped_lines
from tandem.checkpoints.local import LocalStore
from tests.services.ctl.store.example_run import make_example_run


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain: ä 日本 [x]", "plain: ä 日本 [x]"),
        ("\x1b[31m\x07\x9b", r"\x1b[31m\x07\x9b"),
        ("two\nlines\tand\r", r"two\nlines\tand\r"),
        ("\udcff \ud800", r"\udcff \ud800"),
        ("\u202egnp.exe", r"\u202egnp.exe"),
    ],
)
def test_what_can_not_be_shown_is_spelt_out(text, shown):
    assert escaped(text) == shown


def test_a_message_keeps_its_lines():
    assert escaped_lines("one\ntwo\x1b") == "one\ntwo\\x1b"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("streams")
    make_example_run(LocalStore(place / "run"), place / "scratch")
    return place / "run"


COMMANDS = [
    ["store", "ls"],
    ["store", "ls", "--json"],
    ["store", "verify"],
    ["ledger"],
]


def _run(arguments, **streams):
    command = [sys.executable, "-m", "services.ctl", *map(str, arguments)]
    done = subprocess.run(command, check=False, text=True, **streams)
    return done.returncode, done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_a_reader_that_left_ends_the_command_quietly(command, folder):
    reading, writing = os.pipe()
    os.close(reading)
    try:
        said = _run([*command, folder], stdout=writing, stderr=subprocess.PIPE)
    finally:
        os.close(writing)
    assert said == (NOBODY_READS, "")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_closed_output_ends_the_command_quietly(command, folder):
    said = _run([*command, folder], preexec_fn=lambda: os.close(1), stderr=subprocess.PIPE)
    assert said == (NOBODY_READS, "")


def test_closed_errors_do_no_harm(folder):
    code, _ = _run(
        ["ledger", folder, "--json"], preexec_fn=lambda: os.close(2), stdout=subprocess.DEVNULL
    )
    assert code == 0


def test_a_character_that_the_output_does_not_have_is_spelt_out(folder, monkeypatch):
    arguments = ["store", "pin", folder, "日本"]
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    code, err = _run(arguments, stderr=subprocess.PIPE)
    assert code == 2
    assert r"\u65e5\u672c" in err


def test_a_log_line_is_escaped_too(folder):
    named = folder / "evaluations/\x1b[31m"
    named.mkdir()
    (named / "1000-1-d.json").write_bytes(b"x")
    _, err = _run(["ledger", folder], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert err.startswith(r"left out of the ledger: evaluations/\x1b[31m/1000-1-d.json")


def test_help_for_nobody_is_no_trouble():
    reading, writing = os.pipe()
    os.close(reading)
    _, err = _run(["store", "--help"], stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    assert err == ""
