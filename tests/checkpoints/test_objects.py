"""What every backend promises, on each of them."""

import threading

import pytest

from tandem.checkpoints.checksums import crc32c_of
from tandem.errors import GenerationMismatchError, ObjectExistsError, ObjectNotFoundError


def test_a_created_object_reads_back_with_its_size_and_checksum(store):
    # crc32c of "123456789" is 0xE3069283, the check value of the Castagnoli polynomial.
    stat = store.create("attempts/0001.json", b"123456789")
    assert (stat.name, stat.size, stat.crc32c) == ("attempts/0001.json", 9, 0xE3069283)
    assert store.get("attempts/0001.json") == (b"123456789", stat)
    assert store.stat("attempts/0001.json") == stat


def test_part_of_an_object_is_read_and_less_at_its_end(store):
    store.create("x", b"0123456789")
    store.create("empty", b"")
    assert store.read("x", start=0, size=3) == b"012"
    assert store.read("x", start=7, size=100) == b"789"
    assert store.read("x", start=10, size=5) == b""
    assert store.read("x", start=3, size=0) == b""
    assert store.read("empty", start=0, size=5) == b""
    for size in (0, 5):
        with pytest.raises(ObjectNotFoundError):
            store.read("y", start=0, size=size)


def test_an_object_may_be_empty(store, tmp_path):
    stat = store.create("x", b"")
    assert (stat.size, stat.crc32c) == (0, 0)
    assert store.get("x") == (b"", stat)
    assert store.download("x", tmp_path / "copy") == stat
    assert (tmp_path / "copy").read_bytes() == b""


def test_creating_twice_keeps_the_first_object(store):
    store.create("run.json", b"first")
    with pytest.raises(ObjectExistsError):
        store.create("run.json", b"second")
    assert store.get("run.json").data == b"first"


def test_an_object_is_created_from_a_file(store, tmp_path):
    path = tmp_path / "saved.index"
    path.write_bytes(b"abc" * 1000)
    stat = store.create_from_file("checkpoints/ckpt-1-1.index", path)
    assert (stat.size, stat.crc32c) == (3000, crc32c_of(b"abc" * 1000))
    path.unlink()
    assert store.get("checkpoints/ckpt-1-1.index").data == b"abc" * 1000
    path.write_bytes(b"other")
    with pytest.raises(ObjectExistsError):
        store.create_from_file("checkpoints/ckpt-1-1.index", path)


@pytest.mark.parametrize("call", ["get", "stat"])
def test_a_missing_object_is_not_found(store, call):
    with pytest.raises(ObjectNotFoundError):
        getattr(store, call)("attempts/0001.json")
    with pytest.raises(ObjectNotFoundError):
        store.read("attempts/0001.json", start=0, size=1)
    with pytest.raises(ObjectNotFoundError):
        store.delete("attempts/0001.json", generation="1")


def test_replacing_needs_the_generation_that_was_read(store):
    first = store.replace("heartbeats/trainer.json", b"1", generation=None)
    second = store.replace("heartbeats/trainer.json", b"2", generation=first.generation)
    assert second.generation != first.generation
    with pytest.raises(GenerationMismatchError):
        store.replace("heartbeats/trainer.json", b"3", generation=first.generation)
    assert store.get("heartbeats/trainer.json") == (b"2", second)


def test_replacing_an_object_expected_to_be_absent_fails_when_it_is_there(store):
    store.create("best/val.json", b"1")
    with pytest.raises(GenerationMismatchError):
        store.replace("best/val.json", b"2", generation=None)


def test_replacing_an_object_that_is_gone_fails(store):
    stat = store.create("best/val.json", b"1")
    store.delete("best/val.json", generation=stat.generation)
    with pytest.raises(GenerationMismatchError):
        store.replace("best/val.json", b"2", generation=stat.generation)
    assert store.list("") == []


def test_deleting_needs_the_generation(store):
    first = store.create("leases/ckpt-1-1/val.json", b"1")
    second = store.replace("leases/ckpt-1-1/val.json", b"2", generation=first.generation)
    with pytest.raises(GenerationMismatchError):
        store.delete("leases/ckpt-1-1/val.json", generation=first.generation)
    store.delete("leases/ckpt-1-1/val.json", generation=second.generation)
    assert store.list("leases/") == []
    store.create("leases/ckpt-1-1/val.json", b"3")


def test_a_listing_has_all_names_with_the_prefix_in_order(store):
    for name in ["b/2.json", "b/10.json", "b/c/1.json", "a.json", "bb.json"]:
        store.create(name, name.encode())
    assert store.list("b/") == ["b/10.json", "b/2.json", "b/c/1.json"]
    assert store.list("b/1") == ["b/10.json"]
    assert store.list("b") == ["b/10.json", "b/2.json", "b/c/1.json", "bb.json"]
    assert store.list("") == ["a.json", "b/10.json", "b/2.json", "b/c/1.json", "bb.json"]
    assert store.list("nothing/") == []


def test_a_download_is_described_by_the_bytes_that_arrived(store, tmp_path):
    stat = store.create("checkpoints/ckpt-1-1.index", b"abc")
    assert store.download("checkpoints/ckpt-1-1.index", tmp_path / "copy") == stat
    assert (tmp_path / "copy").read_bytes() == b"abc"
    with pytest.raises(ObjectNotFoundError):
        store.download("checkpoints/ckpt-2-1.index", tmp_path / "none")


def _race(number, action):
    barrier = threading.Barrier(number)
    results = [None] * number

    def run(index):
        barrier.wait()
        try:
            results[index] = action(index)
        except (ObjectExistsError, GenerationMismatchError):
            results[index] = "lost"

    threads = [threading.Thread(target=run, args=(index,)) for index in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_of_twelve_racing_creators_one_wins(store):
    results = _race(12, lambda index: store.create("attempts/0001.json", b"%d" % index))
    winners = [index for index, result in enumerate(results) if result != "lost"]
    assert len(winners) == 1
    assert store.get("attempts/0001.json").data == b"%d" % winners[0]


def test_of_twelve_racing_replacers_one_wins(store):
    generation = store.create("best/val.json", b"start").generation
    results = _race(
        12, lambda index: store.replace("best/val.json", b"%d" % index, generation=generation)
    )
    winners = [index for index, result in enumerate(results) if result != "lost"]
    assert len(winners) == 1
    assert store.get("best/val.json").data == b"%d" % winners[0]


def test_a_listing_never_misses_an_object_that_is_being_replaced(store):
    stat = store.create("leases/ckpt-1-1/val.json", b"start")
    stop = threading.Event()

    def keep_replacing():
        generation, number = stat.generation, 0
        while not stop.is_set():
            number += 1
            generation = store.replace(
                "leases/ckpt-1-1/val.json", b"%d" % number, generation=generation
            ).generation

    thread = threading.Thread(target=keep_replacing)
    thread.start()
    try:
        listings = [store.list("leases/") for _ in range(300)]
    finally:
        stop.set()
        thread.join()
    assert listings == [["leases/ckpt-1-1/val.json"]] * 300


def test_folders_come_and_go_while_others_create_in_them(store):
    def create_and_delete(index):
        name = f"leases/ckpt-1-1/{index}.json"
        for round_number in range(30):
            stat = store.create(name, b"%d" % round_number)
            store.delete(name, generation=stat.generation)
        return "done"

    assert _race(4, create_and_delete) == ["done"] * 4
    assert store.list("") == []
