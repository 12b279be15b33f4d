import pytest

from tandem.checkpoints.fetching import fetch_checkpoint, read_damage
from tandem.checkpoints.lines import read_line
from tandem.checkpoints.local import LocalStore
from tandem.checkpoints.names import CheckpointId
from tandem.errors import CheckpointDamagedError, ObjectNotFoundError
from tests.checkpoints.hooked_store import HookedStore, once

DATA = "checkpoints/ckpt-2-1.data-00000-of-00001"


def _remove(store, name):
    store.delete(name, generation=store.stat(name).generation)


@pytest.fixture
def newest(new_trainer):
    trainer = new_trainer()
    trainer.commit(1)
    return trainer.commit(2)


def _fetch(store, clock, checkpoint, folder, *, reader="evaluator-a"):
    return fetch_checkpoint(
        store, checkpoint, folder, reader=reader, surroundings=clock.surroundings
    )


def test_a_fetched_checkpoint_is_what_was_committed(store, clock, newest, tmp_path):
    fetched = _fetch(store, clock, newest, tmp_path / "cache")
    assert fetched.commit.checkpoint == newest
    assert fetched.prefix.name == "ckpt-2-1"
    for suffix in (".index", ".data-00000-of-00001"):
        path = fetched.prefix.with_name(f"ckpt-2-1{suffix}")
        assert path.read_bytes() == f"2-1{suffix}".encode() * 10


def test_a_local_store_is_read_in_place(store, clock, newest, tmp_path):
    fetched = _fetch(store, clock, newest, tmp_path / "cache")
    if isinstance(store, LocalStore):
        assert fetched.prefix == tmp_path / "run" / "checkpoints" / "ckpt-2-1"
        assert not (tmp_path / "cache").exists()
    else:
        assert fetched.prefix == tmp_path / "cache" / "ckpt-2-1"


def test_a_fetch_after_an_interrupted_one_starts_over(store, clock, newest, tmp_path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "ckpt-2-1.index").write_bytes(b"half")
    prefix = _fetch(store, clock, newest, tmp_path / "cache").prefix
    assert prefix.with_name("ckpt-2-1.index").read_bytes() == b"2-1.index" * 10


@pytest.mark.parametrize(
    "damaged",
    [b"", b"2-1.data-00000-of-00001" * 9, b"2-1.data-00000-of-0000!" * 10],
    ids=["empty", "cut", "changed"],
)
def test_damaged_bytes_put_the_checkpoint_into_quarantine(
    store, clock, newest, tmp_path, damage, damaged
):
    damage(DATA, damaged)
    with pytest.raises(CheckpointDamagedError, match=DATA):
        _fetch(store, clock, newest, tmp_path / "cache")
    line = read_line(store)
    assert line.damaged == {newest}
    assert (line.newest, line.newest_sound) == (newest, CheckpointId(1, 1))
    found = read_damage(store, newest)
    assert (found.file, found.found_by) == (DATA, "evaluator-a")
    assert found.expected.startswith("230 bytes, crc32c ")
    assert found.found.startswith(f"{len(damaged)} bytes, crc32c ")


def test_every_flipped_bit_of_every_file_is_detected(store, clock, newest, tmp_path, damage):
    for suffix in (".index", ".data-00000-of-00001", ".commit.json"):
        name = f"checkpoints/ckpt-2-1{suffix}"
        sound = store.get(name).data
        for bit in range(0, len(sound) * 8, 11):
            flipped = bytearray(sound)
            flipped[bit // 8] ^= 1 << bit % 8
            damage(name, bytes(flipped))
            with pytest.raises(CheckpointDamagedError):
                _fetch(store, clock, newest, tmp_path / "cache", reader=None)
        damage(name, sound)
    _fetch(store, clock, newest, tmp_path / "cache")


def test_a_damaged_commit_puts_the_checkpoint_into_quarantine(
    store, clock, newest, tmp_path, damage
):
    damage("checkpoints/ckpt-2-1.commit.json", b"{}")
    with pytest.raises(CheckpointDamagedError, match="commit"):
        _fetch(store, clock, newest, tmp_path / "cache")
    assert read_line(store).newest_sound == CheckpointId(1, 1)


def test_a_fetch_tells_its_caller_again_and_again_that_it_goes_on(store, clock, newest, tmp_path):
    told = []
    fetch_checkpoint(
        store, newest, tmp_path / "cache", reader=None, on_piece=lambda: told.append(1)
    )
    assert len(told) == 2  # a piece of each file


def test_what_the_caller_raises_ends_a_fetch_and_is_no_damage(store, clock, newest, tmp_path):
    def lose_lease():
        raise InterruptedError("the lease is lost")

    with pytest.raises(InterruptedError):
        fetch_checkpoint(store, newest, tmp_path / "cache", reader="me", on_piece=lose_lease)
    assert read_line(store).damaged == frozenset()


def test_a_reader_without_a_name_leaves_the_store_as_it_is(store, clock, newest, tmp_path, damage):
    damage(DATA, b"")
    before = store.list("")
    with pytest.raises(CheckpointDamagedError):
        _fetch(store, clock, newest, tmp_path / "cache", reader=None)
    assert store.list("") == before


def test_two_readers_may_find_the_same_damage(store, clock, newest, tmp_path, damage):
    damage(DATA, b"")
    for _ in range(2):
        with pytest.raises(CheckpointDamagedError):
            _fetch(store, clock, newest, tmp_path / "cache")


def test_a_missing_file_of_a_committed_checkpoint_is_damage(store, clock, newest, tmp_path, damage):
    _remove(store, DATA)
    with pytest.raises(CheckpointDamagedError, match="missing"):
        _fetch(store, clock, newest, tmp_path / "cache")


def test_a_checkpoint_that_was_never_committed_is_not_found(store, clock, newest, tmp_path):
    with pytest.raises(ObjectNotFoundError):
        _fetch(store, clock, CheckpointId(9, 1), tmp_path / "cache")


def test_a_checkpoint_that_goes_while_it_is_read_is_not_found_and_not_damaged(
    store, clock, newest, tmp_path
):
    def retire():
        _remove(store, "checkpoints/ckpt-2-1.commit.json")
        _remove(store, DATA)

    after_commit = HookedStore(store, after=once("get", "commit", retire))
    with pytest.raises(ObjectNotFoundError):
        _fetch(after_commit, clock, newest, tmp_path / "cache")
    assert read_line(store).damaged == frozenset()


def test_a_file_that_is_gone_under_an_intent_is_not_damage(store, clock, newest, tmp_path, damage):
    store.create("checkpoints/ckpt-2-1.retire.json", b"{}")
    _remove(store, DATA)
    with pytest.raises(ObjectNotFoundError, match="retired"):
        _fetch(store, clock, newest, tmp_path / "cache")
