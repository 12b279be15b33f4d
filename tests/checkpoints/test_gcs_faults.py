"""A bucket behind a bad line: refusals, resets, answers that got lost, bytes that changed."""

import dataclasses

import pytest

from tandem.checkpoints import writing
from tandem.checkpoints.checksums import crc32c_of
from tandem.checkpoints.commits import read_commit
from tandem.checkpoints.lines import read_line
from tandem.checkpoints.retrying import Backoff
from tandem.checkpoints.surroundings import SYSTEM
from tandem.errors import (
    CheckpointDamagedError,
    ConfigError,
    GenerationMismatchError,
    ObjectExistsError,
    ObjectNotFoundError,
    StoreUnavailableError,
)
from tests.checkpoints.actors import Trainer

MIB = 1 << 20
QUICK = Backoff(initial_seconds=0.005, max_seconds=0.02, deadline_seconds=30)
IMPATIENT = dataclasses.replace(SYSTEM, sleep=lambda seconds: None)


@pytest.fixture
def store(new_gcs_store):
    return new_gcs_store("run", backoff=QUICK, upload_chunk_bytes=8 * MIB)


@pytest.fixture
def faults(gcs_server):
    """Puts faults; the requests they were applied to are those of this test."""
    yield gcs_server.put_faults
    gcs_server.put_faults()


def _applied(gcs_server):
    return len(gcs_server.faulty_requests)


@pytest.fixture
def big_file(tmp_path):
    """A file of four chunks."""
    path = tmp_path / "big"
    path.write_bytes(bytes(range(256)) * (30 * MIB // 256))
    return path


BURST = {"match": "", "times": 5, "status": 503}
RESETS = {"match": "", "times": 5, "status": "reset"}
RATE = {"match": "", "times": 5, "status": 429}


@pytest.mark.parametrize("fault", [BURST, RESETS, RATE], ids=["503", "reset", "429"])
@pytest.mark.parametrize(
    "call",
    [
        lambda store, path: store.get("x").data == b"abc",
        lambda store, path: store.read("x", start=1, size=1) == b"b",
        lambda store, path: store.stat("x").size == 3,
        lambda store, path: store.list("") == ["x"],
        lambda store, path: store.download("x", path).size == 3,
        lambda store, path: store.delete("x", generation=store.stat("x").generation) is None,
    ],
    ids=["get", "read", "stat", "list", "download", "delete"],
)
def test_reads_and_deletions_outlast_a_burst_of_faults(
    store, gcs_server, faults, tmp_path, fault, call
):
    store.create("x", b"abc")
    faults(fault)
    assert call(store, tmp_path / "copy")
    assert _applied(gcs_server) == 5


@pytest.mark.parametrize("status", [503, "reset"])
def test_a_put_is_never_repeated_by_the_client_itself(store, gcs_server, faults, status):
    first = store.create("x", b"1")
    faults({"match": "POST /upload", "times": 9, "status": status})
    with pytest.raises(StoreUnavailableError):
        store.create("y", b"1")
    with pytest.raises(StoreUnavailableError):
        store.replace("x", b"2", generation=first.generation)
    assert _applied(gcs_server) == 2
    assert store.list("") == ["x"]


@pytest.mark.parametrize("status", [503, "reset"])
def test_a_create_whose_answer_got_lost_is_found_to_be_done(store, gcs_server, faults, status):
    faults({"match": "POST /upload", "times": 9, "status": status, "commit": True})
    stat = writing.create(store, "x", b"mine", surroundings=IMPATIENT)
    assert stat == store.stat("x")
    assert _applied(gcs_server) == 1


def test_a_file_that_changes_on_its_way_is_noticed(store, faults, big_file):
    faults({"match": "PUT /upload", "flip_sent_bit": True})
    with pytest.raises(CheckpointDamagedError, match="arrived in the store with 31457280 bytes"):
        writing.create_from_file(store, "x", big_file, surroundings=IMPATIENT)


@pytest.mark.parametrize("status", [503, "reset"])
def test_a_replace_whose_answer_got_lost_is_found_to_be_done(store, gcs_server, faults, status):
    first = store.create("x", b"old")
    faults({"match": "POST /upload", "times": 9, "status": status, "commit": True})
    stat = writing.replace(store, "x", b"mine", generation=first.generation, surroundings=IMPATIENT)
    assert stat == store.stat("x")
    assert _applied(gcs_server) == 1


def test_puts_outlast_a_burst_of_refusals(store, faults):
    faults({"match": "POST /upload", "times": 4, "status": 503})
    first = writing.create(store, "x", b"1", surroundings=IMPATIENT)
    faults({"match": "POST /upload", "times": 4, "status": "reset"})
    writing.replace(store, "x", b"2", generation=first.generation, surroundings=IMPATIENT)
    assert store.get("x").data == b"2"


def test_a_small_file_whose_answer_got_lost_is_found_to_be_done(store, faults, tmp_path):
    path = tmp_path / "small"
    path.write_bytes(b"abc")
    faults({"match": "POST /upload", "status": 503, "commit": True})
    with pytest.raises(ObjectExistsError):  # the client's repetition met its own success
        store.create_from_file("x", path)
    faults({"match": "POST /upload", "status": 503, "commit": True})
    stat = writing.create_from_file(store, "y", path, surroundings=IMPATIENT)
    assert stat == store.stat("y")


@pytest.mark.parametrize(
    "fault",
    [
        {"match": "POST /upload", "times": 3, "status": 503},
        {"match": "POST /upload", "times": 3, "status": "reset"},
        {"match": "POST /upload", "times": 2, "status": 503, "commit": True},
        {"match": "PUT /upload", "times": 4, "status": 503},
        {"match": "PUT /upload", "times": 3, "status": "reset", "after_bytes": 5 * MIB},
        {"match": "PUT /upload", "times": 1, "status": "reset", "commit": True},
        {"match": "PUT /upload", "times": 2, "status": 503, "commit": True},
        {"match": "PUT /upload", "times": 3, "status": "reset", "commit": True},
        {"match": "PUT /upload", "times": 1, "status": 404},  # the session is forgotten
        {"match": "PUT /upload", "times": 2, "status": 410},
    ],
    ids=str,
)
def test_a_big_file_arrives_whole_whatever_befalls_its_session(
    store, gcs_server, faults, big_file, tmp_path, fault
):
    faults(fault)
    stat = writing.create_from_file(store, "x", big_file, surroundings=IMPATIENT)
    assert _applied(gcs_server) == fault["times"]
    assert (stat.size, stat.crc32c) == (30 * MIB, crc32c_of(big_file.read_bytes()))
    store.download("x", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == big_file.read_bytes()


def test_a_deletion_whose_answer_got_lost_is_found_to_be_done(store, gcs_server, faults):
    for status in (503, "reset"):
        generation = store.create("x", b"1").generation
        faults({"match": "DELETE", "status": status, "commit": True})
        store.delete("x", generation=generation)
        assert _applied(gcs_server) == 1
        assert store.list("") == []


def test_a_deletion_that_never_arrived_does_not_remove_what_came_since(store, faults, gcs_server):
    old = store.create("x", b"old").generation
    store.replace("x", b"new", generation=old)
    faults({"match": "DELETE", "status": 503})
    with pytest.raises(GenerationMismatchError):
        store.delete("x", generation=old)
    assert store.get("x").data == b"new"


def test_a_download_goes_on_where_it_was_cut_off(store, gcs_server, faults, big_file, tmp_path):
    stat = store.create_from_file("x", big_file)
    faults({"match": "GET /download", "times": 3, "status": "reset", "after_bytes": 3 * MIB})
    pieces = []
    assert store.download("x", tmp_path / "copy", on_piece=lambda: pieces.append(1)) == stat
    assert (tmp_path / "copy").read_bytes() == big_file.read_bytes()
    assert (_applied(gcs_server), len(pieces)) == (3, 2)


def test_a_read_that_hangs_is_made_again(new_gcs_store, gcs_server, faults, tmp_path):
    store = new_gcs_store("run", backoff=QUICK, answer_seconds=0.3)
    store.create("x", b"abc")
    faults({"match": "GET", "times": 2, "delay": 0.8})
    assert store.get("x").data == b"abc"
    assert _applied(gcs_server) == 2


def test_a_slow_read_is_waited_for(store, gcs_server, faults, tmp_path):
    store.create("x", b"a" * MIB)
    faults({"match": "GET /download", "times": None, "bytes_per_second": 10 * MIB})
    assert store.download("x", tmp_path / "copy").size == MIB
    assert _applied(gcs_server) == 1


@pytest.mark.parametrize("times", [1, 2])
def test_bits_that_change_on_the_way_are_read_again_and_are_no_damage(
    store, faults, tmp_path, times
):
    stat = store.create("x", b"abc")
    for read in (lambda: store.get("x").stat, lambda: store.download("x", tmp_path / "copy")):
        faults({"match": "GET /download", "times": times, "flip_bit": True})
        assert read() == stat
    assert (tmp_path / "copy").read_bytes() == b"abc"


def test_bits_that_are_still_changed_when_read_again_are_described_as_they_arrive(
    store, faults, tmp_path
):
    store.create("x", b"abc")
    faults({"match": "GET /download", "times": 6, "flip_bit": True})
    assert store.get("x").data == b"`bc"
    found = store.download("x", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"`bc"
    assert found.crc32c == crc32c_of(b"`bc") != store.stat("x").crc32c


def test_a_download_never_mixes_two_generations(store, big_file, tmp_path):
    generation = store.create_from_file("x", big_file).generation

    def replace():
        if store.stat("x").generation == generation:
            store.replace("x", b"other" * 10_000_000, generation=generation)

    with pytest.raises(ObjectNotFoundError):
        store.download("x", tmp_path / "copy", on_piece=replace)


@pytest.mark.parametrize(
    ("status", "hint"), [(401, "credentials"), (403, r"roles/storage\.objectUser")]
)
def test_a_refused_access_is_said_at_once(store, gcs_server, faults, tmp_path, status, hint):
    generation = store.create("x", b"abc").generation
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    calls = [
        lambda: store.get("x"),
        lambda: store.stat("x"),
        lambda: store.list(""),
        lambda: store.create("y", b""),
        lambda: store.create_from_file("y", path),
        lambda: store.replace("x", b"1", generation=generation),
        lambda: store.delete("x", generation=generation),
    ]
    faults({"match": "", "times": None, "status": status})
    for call in calls:
        with pytest.raises(ConfigError, match=hint):
            call()
    assert _applied(gcs_server) == len(calls)


@pytest.mark.parametrize(
    "fault",
    [
        {"match": "POST /upload", "times": 1, "status": 503, "commit": True},
        {"match": "POST /upload", "times": 3, "status": 503, "commit": True},
        {"match": "POST /upload", "times": 3, "status": "reset"},
        {"match": "", "times": 30, "status": 503, "probability": 0.3},
        {"match": "", "times": 30, "status": "reset", "commit": True, "probability": 0.3},
    ],
    ids=str,
)
def test_a_checkpoint_is_committed_once_whatever_befalls_the_line(
    store, clock, faults, tmp_path, fault
):
    trainer = Trainer(store, clock, tmp_path / "scratch")
    faults(fault)
    checkpoint = trainer.save(1)
    faults()
    assert read_line(store).checkpoints == (checkpoint,)
    assert read_commit(store, checkpoint).size == 10 * len("1-1.index1-1.data-00000-of-00001")


@pytest.mark.parametrize(("fault", "outcome"), [(BURST, "error"), (RESETS, "error")])
def test_an_observer_hears_of_every_failure_also_of_those_that_a_repetition_heals(
    new_gcs_store, faults, tmp_path, fault, outcome
):
    told = []

    def observe(operation, outcome, seconds):
        told.append((operation, outcome))

    store = new_gcs_store("observed", backoff=QUICK, observer=observe)
    store.create("x", b"abc")
    faults(fault)
    assert store.get("x").data == b"abc"
    assert told == [("create", "ok"), *5 * [("get", outcome)], ("get", "ok")]
    told.clear()
    faults(fault)
    with pytest.raises(StoreUnavailableError):
        store.create("y", b"abc")
    assert told == [("create", outcome)]


def test_an_observer_hears_of_the_errors_in_an_upload_session(new_gcs_store, faults, big_file):
    told = []
    store = new_gcs_store(
        "observed",
        backoff=QUICK,
        upload_chunk_bytes=8 * MIB,
        observer=lambda operation, outcome, seconds: told.append((operation, outcome)),
    )
    faults({"match": "upload_id", "times": 3, "status": 503})
    store.create_from_file("big", big_file)
    assert told == [*3 * [("upload", "error")], ("upload", "ok")]


@pytest.mark.parametrize(("status", "outcome"), [(401, "refused"), (403, "refused")])
def test_an_observer_hears_of_a_refusal(new_gcs_store, faults, status, outcome):
    told = []
    store = new_gcs_store(
        "observed",
        backoff=QUICK,
        observer=lambda operation, outcome, seconds: told.append((operation, outcome)),
    )
    faults({"match": "", "times": 1, "status": status})
    with pytest.raises(ConfigError):
        store.list("")
    assert told == [("list", outcome)]
