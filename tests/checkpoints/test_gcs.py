"""What is special about a bucket: names, sizes, pages, what is missing or refused."""

import threading

import pytest
from google.auth.credentials import AnonymousCredentials

from tandem.checkpoints import writing
from tandem.checkpoints.checksums import crc32c_of
from tandem.checkpoints.gcs import GcsStore
from tandem.checkpoints.gcs_clients import new_client
from tandem.checkpoints.retrying import Backoff
from tandem.errors import ConfigError, ObjectExistsError, ObjectNotFoundError, StoreUnavailableError
from tests.rig.gcs import BUCKET, unique

MIB = 1 << 20


@pytest.fixture
def store(new_gcs_store):
    return new_gcs_store("run")


def _write(path, size):
    path.write_bytes(b"0123456" * (size // 7) + b"x" * (size % 7))
    return path


@pytest.mark.parametrize("size", [0, 1, 8 * MIB - 1, 8 * MIB, 8 * MIB + 1, 30 * MIB, 33 * MIB])
def test_a_file_of_any_size_arrives_and_comes_back(store, tmp_path, size):
    path = _write(tmp_path / "file", size)
    stat = writing.create_from_file(store, "x", path)
    assert (stat.size, stat.crc32c) == (size, crc32c_of(path.read_bytes()))
    assert store.stat("x") == stat
    assert store.download("x", tmp_path / "copy") == stat
    assert (tmp_path / "copy").read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    "prefix", ["a b", "100%", "a%20b", "a#b", "a?b=c", "ä/ö 漢字", "a+b&c", "a/b/c", "[x]*"]
)
def test_a_prefix_may_have_any_character(gcs_client, tmp_path, prefix):
    store = GcsStore(BUCKET, unique(prefix), client=gcs_client)
    stat = store.create("run.json", b"1")
    stat = store.replace("run.json", b"22", generation=stat.generation)
    assert store.get("run.json") == (b"22", stat)
    assert store.read("run.json", start=1, size=1) == b"2"
    assert store.list("") == ["run.json"]
    path = _write(tmp_path / "file", 9 * MIB)
    assert store.create_from_file("big", path) == store.download("big", tmp_path / "copy")
    store.delete("run.json", generation=stat.generation)
    assert store.list("") == ["big"]


def test_runs_of_which_one_s_name_begins_with_the_other_s_do_not_meet(gcs_client):
    prefix = unique("run1")
    one = GcsStore(BUCKET, prefix, client=gcs_client)
    ten = GcsStore(BUCKET, f"{prefix}0", client=gcs_client)
    ten.create("run.json", b"ten")
    assert one.list("") == []
    with pytest.raises(ObjectNotFoundError):
        one.get("run.json")
    one.create("run.json", b"one")
    assert (one.list(""), ten.list("")) == (["run.json"], ["run.json"])


def test_a_whole_bucket_may_be_a_run(gcs_server, gcs_client):
    gcs_server.make_bucket("whole-bucket")
    store = GcsStore("whole-bucket", "", client=gcs_client)
    store.create("attempts/0001.json", b"1")
    assert store.location == "gs://whole-bucket"
    assert store.list("attempts/") == ["attempts/0001.json"]
    assert store.get("attempts/0001.json").data == b"1"


def test_a_listing_has_more_names_than_fit_on_a_page(store, gcs_server):
    prefix = store.location.removeprefix(f"gs://{BUCKET}/")
    names = [f"evaluations/val/{number:05d}-1-d.json" for number in range(1003)]
    for name in reversed(names):
        gcs_server.overwrite(f"{prefix}/{name}", b"{}")
    assert store.list("evaluations/") == names


def test_folder_markers_and_names_that_no_object_can_have_are_not_listed(store, gcs_server):
    prefix = store.location.removeprefix(f"gs://{BUCKET}/")
    for name in ["", "checkpoints/", "checkpoints/.hidden", "a//b"]:
        gcs_server.overwrite(f"{prefix}/{name}", b"")
    store.create("run.json", b"{}")
    assert store.list("") == ["run.json"]


@pytest.mark.parametrize("name", ["", "../run.json", "/etc/passwd", "a//b", ".store/x", "a/"])
def test_a_name_that_no_object_can_have_is_refused(store, name):
    with pytest.raises(ValueError, match="no object name"):
        store.create(name, b"")


def test_of_twelve_racing_uploads_of_files_one_wins(store, tmp_path):
    barrier = threading.Barrier(12)
    winners = []

    def upload(index):
        path = tmp_path / str(index)
        path.write_bytes(b"%02d" % index * 5 * MIB)
        barrier.wait()
        try:
            store.create_from_file("x", path)
            winners.append(index)
        except ObjectExistsError:
            return

    threads = [threading.Thread(target=upload, args=(index,)) for index in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(winners) == 1
    assert store.read("x", start=0, size=2) == b"%02d" % winners[0]


def test_each_call_is_one_request(store, gcs_server):
    since = len(gcs_server.requests())
    stat = store.create("run.json", b"{}")
    store.get("run.json")
    store.stat("run.json")
    store.list("")
    store.delete("run.json", generation=stat.generation)
    for _ in range(3):
        with pytest.raises(ObjectNotFoundError):
            store.get("run.json")
    lines = gcs_server.requests(since)
    assert [line.split()[0] for line in lines] == [
        "POST",
        "GET",
        "GET",
        "GET",
        "DELETE",
        *["GET"] * 3,
    ]


def test_objects_are_never_served_from_a_cache(store, gcs_client):
    store.create("run.json", b"{}")
    prefix = store.location.removeprefix(f"gs://{BUCKET}/")
    blob = gcs_client.bucket(BUCKET).get_blob(f"{prefix}/run.json")
    assert (blob.cache_control, blob.content_type) == ("no-store", "application/json")


@pytest.mark.parametrize(
    "call",
    [
        lambda store, path: store.list(""),
        lambda store, path: store.create("run.json", b"{}"),
        lambda store, path: store.create_from_file("x", path),
        lambda store, path: store.replace("run.json", b"{}", generation=None),
    ],
    ids=["list", "create", "create_from_file", "replace"],
)
def test_a_missing_bucket_is_named(gcs_client, tmp_path, call):
    store = GcsStore("no-such-bucket", "run", client=gcs_client)
    with pytest.raises(ConfigError, match="there is no bucket 'no-such-bucket'"):
        call(store, _write(tmp_path / "file", 9 * MIB))


def test_a_server_that_is_not_there_is_unavailable():
    client = new_client(
        project="test",
        credentials=AnonymousCredentials(),
        client_options={"api_endpoint": "http://127.0.0.1:1"},  # nobody listens there
    )
    backoff = Backoff(initial_seconds=0.01, deadline_seconds=0.1)
    store = GcsStore(BUCKET, "run", client=client, backoff=backoff)
    for call in [
        lambda: store.list(""),
        lambda: store.get("x"),
        lambda: store.create("x", b""),
        lambda: store.delete("x", generation="1"),
    ]:
        with pytest.raises(StoreUnavailableError, match=f"gs://{BUCKET}/run"):
            call()
    client.close()
