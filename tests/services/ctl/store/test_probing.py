"""`tandem store probe` on real stores."""

import pytest

from services.ctl.store.probing import probe
from tandem.checkpoints.local import LocalStore
from tandem.checkpoints.opening import open_store
from tandem.errors import ConfigError, StoreError
from tests.rig.gcs import BUCKET, unique


def test_a_folder_is_tried_and_left_empty(tandem, tmp_path):
    said = tandem("store", "probe", tmp_path / "run")
    assert said.code == 0
    assert f"{tmp_path / 'run'} can hold a run" in said.out
    assert LocalStore(tmp_path / "run").list("") == []


def test_a_bucket_is_tried_and_left_empty(tandem, gcs_server, monkeypatch):
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", gcs_server.url)
    location = f"gs://{BUCKET}/{unique('run')}"
    said = tandem("store", "probe", location, "--json")
    assert said.json["location"] == location
    assert list(said.json["seconds"]) == [
        "create",
        "refuse a second create",
        "replace",
        "refuse a late replace",
        "list",
        "read",
        "delete",
    ]
    assert open_store(location).list("") == []


@pytest.mark.parametrize("match", ["POST /upload", "GET .*alt", "DELETE"])
def test_a_missing_right_is_one_message(gcs_server, monkeypatch, match):
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", gcs_server.url)
    gcs_server.put_faults({"match": match, "times": None, "status": 403})
    try:
        with pytest.raises(ConfigError, match=r"roles/storage\.objectUser"):
            probe(open_store(f"gs://{BUCKET}/{unique('run')}"), as_json=False)
    finally:
        gcs_server.put_faults()


def test_a_place_that_overwrites_is_refused(tmp_path):
    class Careless(LocalStore):
        def create(self, name, data):
            (tmp_path / "run").mkdir(exist_ok=True)
            path = tmp_path / "run" / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data)
            return self.stat(name)

    with pytest.raises(StoreError, match="overwrites what it should not"):
        probe(Careless(tmp_path / "run"), as_json=False)
    assert LocalStore(tmp_path / "run").list("") == []
