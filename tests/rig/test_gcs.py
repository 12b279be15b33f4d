"""The rig itself, where no test of the store would notice its fault."""

import signal
import subprocess
import sys
import time
import urllib.request

import pytest

from tests.rig.gcs import BUCKET, unique

MIB = 1 << 20


def _answers(url):
    try:
        with urllib.request.urlopen(f"{url}/storage/v1/b", timeout=5):
            return True
    except OSError:
        return False


def test_it_ends_with_its_test_also_when_that_one_is_killed():
    script = (
        "from tests.rig.gcs import running_gcs\n"
        "import time\n"
        "with running_gcs() as server:\n"
        "    print(server.url, server.upstream_url, flush=True)\n"
        "    time.sleep(600)\n"
    )
    test = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    urls = test.stdout.readline().split()
    assert all(map(_answers, urls))
    test.send_signal(signal.SIGKILL)
    test.communicate()
    deadline = time.monotonic() + 60
    while any(map(_answers, urls)):
        assert time.monotonic() < deadline, "it is still there"
        time.sleep(0.05)


def test_requests_are_logged_with_the_object_s_name_uploads_too(gcs_server, gcs_client):
    name = unique("a b.json")
    since = len(gcs_server.requests())
    blob = gcs_client.bucket(BUCKET).blob(name)
    blob.upload_from_string(b"{}")
    blob.upload_from_string(b"x" * 9 * MIB)
    blob.reload()
    lines = gcs_server.requests(since)
    assert [line.split()[0] for line in lines] == ["POST", "POST", "PUT", "GET"]
    assert all(line.endswith(f" {name}") for line in lines)


@pytest.mark.parametrize("size", [9 * MIB, 4 * MIB])
def test_a_throttle_holds_bytes_back(gcs_server, gcs_client, size):
    gcs_server.put_faults({"match": "", "times": None, "bytes_per_second": 20 * MIB})
    began = time.monotonic()
    blob = gcs_client.bucket(BUCKET).blob(unique("x"))
    blob.upload_from_string(b"x" * size)
    blob.download_as_bytes()
    seconds = time.monotonic() - began
    gcs_server.put_faults()
    assert seconds >= 2 * size / (20 * MIB) * 0.9
