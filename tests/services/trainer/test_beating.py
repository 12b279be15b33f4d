"""Heartbeats from a thread, on a store that says when it was written to."""

import queue

import pytest

from services.trainer.beating import Beats
from tandem.checkpoints.heartbeats import TRAINER, Heartbeat, read_heartbeats
from tandem.errors import AttemptSupersededError, StoreUnavailableError
from tests.checkpoints.actors import FakeClock, claim
from tests.checkpoints.hooked_store import HookedStore
from tests.checkpoints.memory_store import MemoryStore

PATIENCE = 30.0  # of waits that end by an event; only a broken test waits so long


class Written:
    """Steps of the beats that reached the store, in order."""

    def __init__(self, store):
        self._store = store
        self._steps = queue.SimpleQueue()
        self.num_beats = 0

    def __call__(self, operation, name):
        if operation == "replace":
            self.num_beats += 1
            self._steps.put(read_heartbeats(self._store)[TRAINER])

    def next(self):
        return self._steps.get(timeout=PATIENCE)


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def store():
    return MemoryStore()


@pytest.fixture
def attempt(store, clock):
    return claim(store, clock)


@pytest.fixture
def written(store):
    return Written(store)


def beats_on(store, attempt, clock, *, interval):
    return Beats(store, attempt, interval_seconds=interval, surroundings=clock.surroundings)


def test_a_post_is_written_once_and_a_loop_that_hangs_falls_silent(store, attempt, clock, written):
    with beats_on(HookedStore(store, after=written), attempt, clock, interval=0.0) as beats:
        beats.post("training", 1, total_loss=0.5)
        beat = written.next()
        assert (beat.phase, beat.step, beat.facts["total_loss"]) == ("training", 1, 0.5)
        beats.post("training", 2)
        assert written.next().step == 2
    assert written.num_beats == 2


def test_posts_of_one_phase_wait_for_the_interval_and_only_the_newest_is_written(
    store, attempt, clock, written
):
    with beats_on(HookedStore(store, after=written), attempt, clock, interval=3600.0) as beats:
        beats.post("training", 1)
        assert written.next().step == 1
        for step in (2, 3, 4):
            beats.post("training", step)
        beats.post("saving", 4)
        beat = written.next()
        assert (beat.phase, beat.step) == ("saving", 4)
    assert written.num_beats == 2


def test_the_last_post_is_written_before_the_end(store, attempt, clock, written):
    with beats_on(HookedStore(store, after=written), attempt, clock, interval=3600.0) as beats:
        beats.post("training", 1)
        assert written.next().step == 1
        beats.post("training", 2)
    assert read_heartbeats(store)[TRAINER].step == 2


def test_a_newer_attempt_that_beats_is_noticed_between_saves(store, attempt, clock):
    newer = claim(store, clock)
    Heartbeat(store, TRAINER, attempt=newer.number, surroundings=clock.surroundings).beat(
        "training"
    )
    with beats_on(store, attempt, clock, interval=0.0) as beats:
        beats.post("training", 1)
    with pytest.raises(AttemptSupersededError, match="attempt 2 has taken over"):
        beats.raise_failure()
    assert read_heartbeats(store)[TRAINER].attempt == newer.number


def test_a_store_that_is_away_ends_nothing_and_is_written_to_when_it_is_back(
    store, attempt, clock, written, caplog
):
    away = queue.SimpleQueue()
    is_away = [True]

    def be_away(operation, name):
        if is_away[0]:
            away.put(name)
            raise StoreUnavailableError("away")

    hooked = HookedStore(store, before=be_away, after=written)
    with beats_on(hooked, attempt, clock, interval=0.0) as beats, caplog.at_level("INFO"):
        beats.post("training", 1)
        away.get(timeout=PATIENCE)
        is_away[0] = False
        beats.post("saving", 2)
        while written.next().step != 2:
            pass
        beats.raise_failure()


def test_what_the_thread_dies_of_is_raised_in_the_loop(store, attempt, clock):
    def break_down(operation, name):
        raise ValueError("broken")

    hooked = HookedStore(store, before=break_down)
    with beats_on(hooked, attempt, clock, interval=0.0) as beats:
        beats.post("training", 1)
    with pytest.raises(ValueError, match="broken"):
        beats.raise_failure()
