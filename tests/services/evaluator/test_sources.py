"""Which folders are refused as a place of checkpoints."""

import pytest

from services.evaluator.sources import refuse_inner_folder, refuse_missing_folder
from tandem.checkpoints.local import LocalStore
from tandem.checkpoints.opening import open_store
from tandem.errors import ConfigError
from tests.checkpoints.actors import FakeClock, Trainer
from tests.rig.gcs import BUCKET, unique


def _refuse_missing(store):
    refuse_missing_folder(store, store.list(""))


def test_a_folder_that_does_not_exist_is_refused_and_an_empty_one_is_not(tmp_path):
    with pytest.raises(
        ConfigError, match=r"checkpoint_dir is .*/model_dir, but there is no such f"
    ):
        _refuse_missing(LocalStore(tmp_path / "model_dir"))
    (tmp_path / "model_dir").mkdir()
    _refuse_missing(LocalStore(tmp_path / "model_dir"))


def test_in_a_bucket_a_folder_is_there_once_an_object_is(gcs_server, monkeypatch):
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", gcs_server.url)
    store = open_store(f"gs://{BUCKET}/{unique('adopt')}/model_dir")
    with pytest.raises(ConfigError, match="but there is no object below it"):
        _refuse_missing(store)
    store.create("graph.pbtxt", b"x")
    _refuse_missing(store)


def test_a_runs_inner_folder_is_refused_with_the_run(tmp_path):
    run = LocalStore(tmp_path / "run")
    Trainer(run, FakeClock(), tmp_path / "scratch").save(1)
    refuse_inner_folder(run, run.list(""))
    inner = LocalStore(tmp_path / "run/checkpoints")
    with pytest.raises(ConfigError, match=f"give the run, {tmp_path}/run, as checkpoint_dir"):
        refuse_inner_folder(inner, inner.list(""))


def test_files_copied_out_of_a_run_without_its_commits_are_no_inner_folder(tmp_path):
    store = LocalStore(tmp_path)
    refuse_inner_folder(store, ["ckpt-1-1.index", "ckpt-1-1.data-00000-of-00001", "x.commit.json"])
