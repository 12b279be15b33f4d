import subprocess
import sys

import pytest

from tandem.checkpoints.opening import open_store
from tandem.errors import ConfigError
from tests.rig.gcs import BUCKET, unique


def test_opening_writes_nothing(tmp_path):
    store = open_store(str(tmp_path / "run"))
    assert store.location == str(tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_bucket_is_opened_through_the_emulator_that_the_environment_names(
    gcs_server, monkeypatch
):
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", gcs_server.url)
    location = f"gs://{BUCKET}/{unique('run')}"
    store = open_store(location + "/")
    assert store.location == location
    assert store.list("") == []
    store.create("run.json", b"{}")
    assert open_store(location).get("run.json").data == b"{}"


@pytest.mark.parametrize("location", ["s3://bucket/run", "gs:/bucket/run", "gs://", "gs://b//run"])
def test_a_location_that_is_no_folder_and_no_bucket_is_refused(location):
    with pytest.raises(ConfigError, match="gs://BUCKET/PREFIX"):
        open_store(location)


def test_the_home_of_a_user_who_does_not_exist_is_refused():
    with pytest.raises(ConfigError, match="nobody-of-that-name"):
        open_store("~nobody-of-that-name/run")


def test_missing_credentials_are_said_in_one_message_with_the_ways_to_get_some(
    monkeypatch, tmp_path
):
    monkeypatch.delenv("STORAGE_EMULATOR_HOST", raising=False)
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    with pytest.raises(ConfigError) as caught:
        open_store("gs://some-bucket/run")
    message = str(caught.value)
    assert "gs://some-bucket/run: no Google Cloud credentials" in message
    assert "Workload Identity" in message
    assert "gcloud auth application-default login" in message


def test_a_key_file_that_is_missing_is_named(monkeypatch, tmp_path):
    monkeypatch.delenv("STORAGE_EMULATOR_HOST", raising=False)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "key.json"))
    with pytest.raises(ConfigError, match=r"key\.json"):
        open_store("gs://some-bucket/run")


def test_local_runs_do_without_google_s_client(tmp_path):
    script = (
        "import sys; from tandem.checkpoints.opening import open_store; "
        f"open_store({str(tmp_path)!r}); print('google.cloud.storage' in sys.modules)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert ended.stdout == "False\n"


def test_a_file_is_no_run_folder(tmp_path):
    path = tmp_path / "pipeline.config"
    path.write_text("")
    with pytest.raises(ConfigError, match="is a file"):
        open_store(str(path))


def test_an_empty_location_is_refused():
    with pytest.raises(ConfigError, match="empty"):
        open_store(" ")
