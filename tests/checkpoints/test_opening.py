import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

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


class _MetadataServer(BaseHTTPRequestHandler):
    """As much of a pod's metadata server as says that there is one."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Metadata-Flavor", "Google")
        self.send_header("Content-Type", "text/plain")
        self.end_headers()
        self.wfile.write(b"googleapis.com" if "universe" in self.path else b"a-project")

    def log_message(self, *args):
        pass


def test_a_new_pod_waits_for_its_metadata_server(tmp_path):
    server = HTTPServer(("127.0.0.1", 0), _MetadataServer, bind_and_activate=False)
    server.server_bind()  # takes the port, but answers nobody yet
    address = f"127.0.0.1:{server.server_port}"
    environment = {  # Google's library reads some of it when it is imported
        "CLOUDSDK_CONFIG": str(tmp_path),
        "GCE_METADATA_HOST": address,
        "GCE_METADATA_IP": address,
        "GCE_METADATA_DETECT_RETRIES": "1",
        "GCE_METADATA_TIMEOUT": "1",
    }
    script = (
        "from tandem.checkpoints.opening import open_store\n"
        "print('begins', flush=True)\n"
        "print(open_store('gs://some-bucket/run', credentials_seconds=60.0).location)"
    )
    thread = threading.Thread(target=server.serve_forever)
    with subprocess.Popen(
        [sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout.readline() == "begins\n"
            time.sleep(3.0)
            assert process.poll() is None
            server.server_activate()
            thread.start()
            assert process.stdout.read() == "gs://some-bucket/run\n"
        finally:
            process.kill()
            if thread.is_alive():
                server.shutdown()
            server.server_close()


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
