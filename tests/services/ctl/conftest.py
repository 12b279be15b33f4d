"""A run of which everything is known, and the `tandem` command on it."""

import json
import sys
from typing import NamedTuple

import pytest

from services.ctl.__main__ import main
from tandem.checkpoints.local import LocalStore
from tests.services.ctl.store.example_run import make_example_run


class Said(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def tandem(monkeypatch, capsys):
    """Runs the command with arguments, at 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["tandem", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        said = capsys.readouterr()
        return Said(int(end.value.code), said.out, said.err)

    return run


@pytest.fixture
def folder(tmp_path):
    make_example_run(LocalStore(tmp_path / "run"), tmp_path / "scratch")
    return tmp_path / "run"


@pytest.fixture
def store(folder):
    return LocalStore(folder)
