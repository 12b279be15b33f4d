"""One flipped bit in any object: its reader notices, nobody dies of it, the next best is taken."""

import itertools
import random

import pytest

from tandem.checkpoints import names
from tandem.checkpoints.attempts import Outcome, end_attempt
from tandem.checkpoints.auditing import audit
from tandem.checkpoints.bests import best_entry, write_best
from tandem.checkpoints.fetching import fetch_checkpoint, read_damage
from tandem.checkpoints.heartbeats import TRAINER, Heartbeat, HeartbeatWatcher
from tandem.checkpoints.ledger import read_entries, recorded_checkpoints
from tandem.checkpoints.lines import read_line
from tandem.checkpoints.pins import pin, pinned_checkpoints, read_pins
from tandem.checkpoints.records import encode
from tandem.checkpoints.retiring import Intent
from tandem.checkpoints.runs import ensure_run
from tandem.checkpoints.state_file import paths_named
from tandem.checkpoints.tries import read_tries, record_try
from tandem.errors import CheckpointDamagedError, StoreError
from tests.checkpoints.actors import METRIC, VAL, claim

POSITIONS = ["first", "middle", "last", "any-1", "any-2", "any-3"]
DATA_SUFFIXES = [".index", ".data-00000-of-00001", ".commit.json"]


def _position(position, size):
    fixed = {"first": 0, "middle": size // 2, "last": size - 1}
    return fixed.get(position, random.Random(position).randrange(size))


@pytest.fixture(params=POSITIONS)
def flip(request, store, damage):
    """Flips a bit of an object, in the byte at the position that the test is run with."""

    def flip(name):
        changed = bytearray(store.get(name).data)
        byte = _position(request.param, len(changed))
        changed[byte] ^= 1 << random.Random(f"{name} {request.param}").randrange(8)
        damage(name, bytes(changed))

    return flip


@pytest.fixture
def trainer(new_trainer):
    """With checkpoints of steps 1, 2 and 3."""
    trainer = new_trainer()
    ensure_run(trainer.store)
    for step in (1, 2, 3):
        trainer.save(step)
    return trainer


@pytest.fixture
def checkpoints(trainer):
    return read_line(trainer.store).checkpoints


def _objects_found_wrong(store):
    return {finding.object for finding in audit(store).findings}


@pytest.mark.parametrize("suffix", DATA_SUFFIXES)
def test_a_flipped_bit_in_a_checkpoint_is_noticed_and_the_one_before_is_taken(
    store, clock, trainer, checkpoints, flip, tmp_path, suffix
):
    *_, before, newest = checkpoints
    name = names.checkpoint_object(newest, suffix)
    flip(name)
    assert _objects_found_wrong(store) == {name}
    with pytest.raises(CheckpointDamagedError, match=name):
        fetch_checkpoint(store, newest, tmp_path / "cache", reader="evaluator-a")
    assert read_damage(store, newest).file == name
    line = read_line(store)
    assert (line.damaged, line.newest_sound) == ({newest}, before)
    assert claim(store, clock).resumed_from == before
    fetched = fetch_checkpoint(store, before, tmp_path / "cache", reader="evaluator-a")
    assert fetched.commit.checkpoint == before
    trainer.write_state_file()
    named = paths_named(store.get(names.STATE_FILE).data.decode())
    assert set(named) == {"ckpt-1-1", "ckpt-2-1"}


@pytest.mark.parametrize("suffix", DATA_SUFFIXES)
def test_a_flipped_bit_in_an_older_checkpoint_does_not_touch_the_newest(
    store, trainer, checkpoints, flip, tmp_path, suffix
):
    oldest, *_, newest = checkpoints
    flip(names.checkpoint_object(oldest, suffix))
    with pytest.raises(CheckpointDamagedError):
        fetch_checkpoint(store, oldest, tmp_path / "cache", reader="evaluator-a")
    assert read_line(store).newest_sound == newest
    trainer.retire()
    assert read_line(store).checkpoints == (newest,)


@pytest.mark.parametrize("name", ["attempts/0001.json", "attempts/0001.end.json"])
def test_a_flipped_bit_in_an_attempt_s_records_stops_everyone_with_its_name(
    store, clock, trainer, flip, name
):
    end_attempt(store, trainer.attempt, outcome=Outcome.PREEMPTED, surroundings=clock.surroundings)
    flip(name)
    assert name in _objects_found_wrong(store)
    with pytest.raises(StoreError, match=f"{name} is damaged"):
        read_line(store)
    with pytest.raises(StoreError, match=f"{name} is damaged"):
        claim(store, clock)


def test_a_flipped_bit_in_the_run_s_record_stops_everyone_with_its_name(store, clock, flip):
    ensure_run(store, surroundings=clock.surroundings)
    flip(names.RUN)
    assert _objects_found_wrong(store) == {names.RUN}
    with pytest.raises(StoreError, match=r"run\.json is damaged"):
        ensure_run(store, surroundings=clock.surroundings)


def test_a_flipped_bit_in_a_ledger_entry_makes_it_a_number_that_nobody_believes(
    store, trainer, checkpoints, new_evaluator, flip
):
    first, second, _ = checkpoints
    evaluator = new_evaluator("a")
    evaluator.score(first, 0.5)
    evaluator.score(second, 0.9)
    name = names.entry_name(second, VAL)
    flip(name)
    assert _objects_found_wrong(store) == {name}
    entries = read_entries(store, VAL)
    assert [entry.checkpoint for entry in entries] == [first]
    assert best_entry(entries, metric=METRIC, among=checkpoints).checkpoint == first
    assert recorded_checkpoints(store, VAL) == {first, second}
    trainer.retire()
    assert first in read_line(store).checkpoints


def test_a_flipped_bit_in_a_try_still_counts_as_a_try(store, clock, checkpoints, flip):
    first = checkpoints[0]
    record_try(store, first, VAL, recorder="a", surroundings=clock.surroundings)
    name = names.try_name(first, VAL, 1)
    flip(name)
    assert _objects_found_wrong(store) == {name}
    assert read_tries(store, first, VAL) == ()
    assert record_try(store, first, VAL, recorder="a", surroundings=clock.surroundings) == 2


def test_a_flipped_bit_in_a_lease_takes_it_from_its_holder_and_keeps_the_checkpoint(
    store, clock, trainer, checkpoints, new_evaluator, flip
):
    first = checkpoints[0]
    holder, other = new_evaluator("a"), new_evaluator("b")
    lease = holder.acquire(first)
    trainer.retire()
    flip(lease.name)
    assert _objects_found_wrong(store) == {lease.name}
    assert holder.leases.renew(lease) is None
    holder.leases.release(lease)  # not ours any more
    assert other.acquire(first) is None
    trainer.retire()
    assert first in read_line(store).checkpoints
    clock.now += 61
    assert other.acquire(first) is not None


def test_a_flipped_bit_in_a_heartbeat_is_silence_until_the_next_beat(store, clock, flip):
    ensure_run(store)
    heart = Heartbeat(store, TRAINER, attempt=1, surroundings=clock.surroundings)
    assert heart.beat("training", 5)
    name = names.heartbeat_name(TRAINER)
    flip(name)
    assert _objects_found_wrong(store) == {name}
    watcher = HeartbeatWatcher(store, TRAINER, surroundings=clock.surroundings)
    assert watcher.look().heartbeat is None
    assert heart.beat("training", 6)
    assert watcher.look().heartbeat.step == 6


def test_a_flipped_bit_in_a_quarantine_does_not_lift_it(store, checkpoints, damage, flip, tmp_path):
    newest = checkpoints[-1]
    damage(names.checkpoint_object(newest, ".index"), b"other")
    with pytest.raises(CheckpointDamagedError):
        fetch_checkpoint(store, newest, tmp_path / "cache", reader="evaluator-a")
    name = names.checkpoint_object(newest, names.DAMAGE_SUFFIX)
    flip(name)
    assert name in _objects_found_wrong(store)
    assert read_line(store).damaged == {newest}
    with pytest.raises(StoreError, match=f"{name} is damaged"):
        read_damage(store, newest)


def test_a_flipped_bit_in_an_intent_does_not_stop_the_retiring(store, trainer, checkpoints, flip):
    first = checkpoints[0]
    name = names.checkpoint_object(first, names.INTENT_SUFFIX)
    intent = Intent(nonce="n", checkpoint=first, attempt=1, reason="old", decided_at="now")
    store.create(name, encode(intent))
    flip(name)
    assert name in _objects_found_wrong(store)
    trainer.retire()
    assert store.list(names.checkpoint_object(first, ".")) == []


def test_a_flipped_bit_in_a_pin_does_not_unpin(store, clock, trainer, checkpoints, flip):
    first = checkpoints[0]
    pin(store, first, reason="paper", by="me", surroundings=clock.surroundings)
    name = names.pin_name(first)
    flip(name)
    assert _objects_found_wrong(store) == {name}
    assert (read_pins(store), pinned_checkpoints(store)) == ({}, {first})
    trainer.retire()
    assert first in read_line(store).checkpoints


def test_a_flipped_bit_in_a_projection_goes_when_it_is_next_written(
    store, clock, trainer, checkpoints, new_evaluator, flip
):
    new_evaluator("a").score(checkpoints[0], 0.5)
    best = best_entry(read_entries(store, VAL), metric=METRIC, among=checkpoints)
    write_best(store, best, metric=METRIC, surroundings=clock.surroundings)
    name = names.best_name(VAL.name)
    flip(name)
    assert _objects_found_wrong(store) == {name}
    write_best(store, best, metric=METRIC, surroundings=clock.surroundings)
    assert _objects_found_wrong(store) == set()


def test_a_flipped_bit_in_the_state_file_goes_when_it_is_next_written(
    store, trainer, checkpoints, flip
):
    flip(names.STATE_FILE)
    trainer.write_state_file()
    named = paths_named(store.get(names.STATE_FILE).data.decode())
    assert set(named) == {f"ckpt-{checkpoint}" for checkpoint in checkpoints}
    assert _objects_found_wrong(store) == set()


def test_the_positions_are_different_ones():
    found = [_position(position, 500) for position in POSITIONS]
    assert all(one != other for one, other in itertools.combinations(found, 2))
