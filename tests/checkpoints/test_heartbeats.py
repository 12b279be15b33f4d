from tandem.checkpoints.heartbeats import (
    TRAINER,
    Heartbeat,
    HeartbeatWatcher,
    evaluator_process,
    read_heartbeat,
    read_heartbeats,
)
from tandem.checkpoints.watching import GenerationWatch
from tests.checkpoints.actors import FakeClock
from tests.checkpoints.hooked_store import HookedStore, once


def _heartbeat(store, clock, attempt=1):
    return Heartbeat(store, TRAINER, attempt=attempt, surroundings=clock.surroundings)


def test_a_beat_says_phase_step_and_since_when(store, clock):
    heartbeat = _heartbeat(store, clock)
    heartbeat.beat("starting")
    clock.now = 5
    heartbeat.beat("training", 1, loss=0.5, eta=None)
    clock.now = 12.5
    heartbeat.beat("training", 2, loss=0.25)
    beat = read_heartbeats(store)[TRAINER]
    assert (beat.phase, beat.step, beat.phase_seconds, beat.attempt) == ("training", 2, 7.5, 1)
    assert beat.facts == {"loss": 0.25, "beat_at": "2026-01-31T12:00:00Z"}
    assert beat.phase_since == "2026-01-31T12:00:00Z"


def test_what_is_not_known_or_no_number_is_left_out_and_every_beat_says_more_when_asked(
    store, clock
):
    said = iter([{"errors": 0}, {"errors": 2}])
    heartbeat = Heartbeat(
        store, TRAINER, attempt=1, more_facts=lambda: next(said), surroundings=clock.surroundings
    )
    heartbeat.beat("training", 1, eta=None, loss=float("nan"), rate=float("inf"))
    assert set(read_heartbeat(store, TRAINER).facts) == {"errors", "beat_at"}
    heartbeat.beat("training", 2)
    assert read_heartbeat(store, TRAINER).facts["errors"] == 2
    assert read_heartbeat(store, evaluator_process("a")) is None


def test_a_process_that_starts_again_goes_on_with_its_heartbeat(store, clock):
    _heartbeat(store, clock).beat("training", 1)
    assert _heartbeat(store, clock).beat("starting")
    assert read_heartbeats(store)[TRAINER].phase == "starting"


def test_an_old_attempt_does_not_beat_for_a_newer_one(store, clock):
    old, new = _heartbeat(store, clock, 1), _heartbeat(store, clock, 2)
    assert old.beat("training", 5)
    assert new.beat("starting")
    assert not old.beat("training", 6)
    assert read_heartbeats(store)[TRAINER].attempt == 2
    assert new.beat("training", 5)


def test_two_processes_of_one_name_do_not_stop_each_other(store, clock):
    name = evaluator_process("a")
    one = Heartbeat(store, name, surroundings=clock.surroundings)
    other = Heartbeat(store, name, surroundings=clock.surroundings)
    assert [one.beat("x"), other.beat("x"), one.beat("x"), other.beat("x")] == [True] * 4
    late = HookedStore(store, before=once("replace", "evaluator", lambda: other.beat("y")))
    assert Heartbeat(late, name, surroundings=clock.surroundings).beat("z")


def test_every_process_has_a_heartbeat_of_its_own(store, clock):
    _heartbeat(store, clock).beat("training")
    Heartbeat(store, evaluator_process("a/b"), surroundings=clock.surroundings).beat("waiting")
    assert set(read_heartbeats(store)) == {"trainer", "evaluator-a/b"}
    assert store.list("heartbeats/") == [
        "heartbeats/evaluator-a%2Fb.json",
        "heartbeats/trainer.json",
    ]


def test_a_heartbeat_is_stale_when_the_observer_saw_it_unchanged_long_enough(store, clock):
    writer_clock = FakeClock()
    writer_clock.now = 1e9  # another machine's clock, which nobody asks
    heartbeat = _heartbeat(store, writer_clock)
    heartbeat.beat("training", 1)
    watcher = HeartbeatWatcher(store, TRAINER, stale_seconds=60, surroundings=clock.surroundings)
    assert watcher.look().is_fresh
    clock.now = 59
    assert watcher.look() == watcher.look()
    assert (watcher.look().is_fresh, watcher.look().unchanged_seconds) == (True, 59)
    clock.now = 60
    assert not watcher.look().is_fresh
    heartbeat.beat("training", 2)
    view = watcher.look()
    assert (view.is_fresh, view.has_changed, view.heartbeat.step) == (True, True, 2)


def test_a_process_that_never_beat_is_not_fresh(store, clock):
    watcher = HeartbeatWatcher(store, TRAINER, surroundings=clock.surroundings)
    watcher.look()
    clock.now = 30
    view = watcher.look()
    assert (view.heartbeat, view.is_fresh, view.unchanged_seconds) == (None, False, 30)


def test_a_slow_read_does_not_lengthen_the_silence(store, clock):
    store.create("x", b"1")

    def be_slow(operation, name):
        clock.now += 100

    watch = GenerationWatch(HookedStore(store, before=be_slow), surroundings=clock.surroundings)
    watch.look("x")
    clock.now += 1
    assert watch.look("x").unchanged_seconds == 1


def test_forgetting_an_object_starts_over(store, clock):
    store.create("x", b"1")
    watch = GenerationWatch(store, surroundings=clock.surroundings)
    watch.look("x")
    clock.now = 10
    watch.forget("x")
    assert watch.look("x") == (b"1", store.stat("x").generation, 0, False)


def test_a_damaged_beat_counts_as_none_and_the_next_one_overwrites_it(store, clock):
    store.replace("heartbeats/trainer.json", b"{", generation=None)
    assert read_heartbeats(store) == {}
    watcher = HeartbeatWatcher(store, TRAINER, surroundings=clock.surroundings)
    assert watcher.look().heartbeat is None
    assert _heartbeat(store, clock).beat("training", 1)
    assert watcher.look().heartbeat.step == 1
