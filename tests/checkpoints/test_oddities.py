"""A local run folder in which something else stands under an object's name."""

import os

import pytest

from tandem.checkpoints.auditing import audit
from tandem.checkpoints.local import LocalStore
from tandem.checkpoints.oddities import oddities
from tandem.checkpoints.runs import ensure_run
from tests.checkpoints.actors import Trainer
from tests.checkpoints.memory_store import MemoryStore


@pytest.fixture
def run(tmp_path, clock):
    store = LocalStore(tmp_path / "run")
    ensure_run(store)
    trainer = Trainer(store, clock, tmp_path / "scratch")
    trainer.save(1)
    return store


def _folder(path):
    path.mkdir(parents=True)


def _filled_folder(path):
    path.mkdir(parents=True)
    (path / "x").write_text("x")


def _dead_link(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to("nowhere")


def _pipe(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)


@pytest.mark.parametrize("make", [_folder, _filled_folder, _dead_link, _pipe])
@pytest.mark.parametrize(
    "name",
    [
        "run.json",
        "attempts/0001.json",
        "attempts/0002.json",
        "attempts/0001.end.json",
        "checkpoints/checkpoint",
        "checkpoints/ckpt-1-1.index",
        "checkpoints/ckpt-1-1.commit.json",
        "pins/ckpt-1-1.json",
        "leases/ckpt-1-1/val.json",
        "evaluations/val/1-1-d1.json",
        "heartbeats/trainer.json",
    ],
)
def test_what_is_no_file_is_a_finding_wherever_it_stands(run, name, make):
    path = run.local_path(name)
    path.unlink(missing_ok=True)
    make(path)
    assert name in [finding.object for finding in audit(run).findings]


def test_it_is_said_what_stands_there(run):
    for name, make in {"1": _folder, "2": _dead_link, "3": _pipe}.items():
        make(run.local_path(f"pins/ckpt-{name}-1.json"))
    assert oddities(run, run.list("")) == {
        "pins/ckpt-1-1.json": "it is a folder",
        "pins/ckpt-2-1.json": "it is a dead link (No such file or directory)",
        "pins/ckpt-3-1.json": "it is a pipe, a socket or a device",
    }


def test_a_link_to_a_file_and_folders_of_others_are_none(run):
    moved = run.local_path("run.json").rename(run.local_path("run.json").parent.parent / "moved")
    run.local_path("run.json").symlink_to(moved)
    run.local_path("train/plugins/x").mkdir(parents=True)
    assert oddities(run, run.list("")) == {}
    assert audit(run).findings == ()


def test_a_store_without_files_has_none():
    assert oddities(MemoryStore(), ["run.json"]) == {}
