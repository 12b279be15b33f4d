"""Where a loop hangs, on a clock that only the test moves."""

import threading

import pytest

from services.watchdog import Place, Watchdog, Where, stack_of, word_about
from tandem.checkpoints.heartbeats import TRAINER, Heartbeat, read_heartbeat, watchdog_process
from tandem.errors import StoreUnavailableError
from tandem.telemetry.health import Health
from tests.checkpoints.actors import FakeClock
from tests.checkpoints.hooked_store import HookedStore
from tests.checkpoints.memory_store import MemoryStore

READING = Place("waiting for data")
COMPILING = Place("taking a step", patience_seconds=600.0)
PATIENCE = 30.0  # of waits that end by an event; only a broken test waits so long


@pytest.mark.parametrize(
    ("silent", "told_ago", "word"),
    [
        (59, None, None),
        (60, None, "hanging"),
        (75, 15, None),
        (90, 29.9, "hanging"),
        (0, 15, "recovered"),
        (0, None, None),
    ],
)
def test_a_loop_is_told_to_hang_every_half_minute_and_once_that_it_does_no_more(
    silent, told_ago, word
):
    found = word_about(silent_seconds=silent, patience_seconds=60, told_seconds_ago=told_ago)
    assert found == word


class Scene:
    """A loop that the test moves, and looks at it."""

    def __init__(self, store, clock, **more):
        self.clock, self.store = clock, store
        self.where = Where(READING, monotonic=lambda: clock.now)
        self.health = Health(patience_seconds=60, monotonic=lambda: clock.now)
        self.health.beat(phase="training", step=7)
        self.dog = Watchdog(
            store,
            TRAINER,
            where=self.where,
            health=self.health,
            host="pod-1",
            attempt=more.pop("attempt", 1),
            surroundings=clock.surroundings,
            **more,
        )

    def look_at(self, now):
        self.clock.now = now
        self.dog.look()
        return read_heartbeat(self.store, watchdog_process(TRAINER))


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def store():
    return MemoryStore()


@pytest.fixture
def scene(store, clock):
    return Scene(store, clock)


def test_a_loop_that_gets_on_is_not_written_about(scene):
    for now in (15, 30, 45, 59):
        assert scene.look_at(now) is None
    scene.where.at = READING  # it came by
    assert scene.look_at(118) is None


def test_a_record_says_where_the_loop_hangs_and_for_how_long(scene):
    assert scene.look_at(45) is None
    record = scene.look_at(60)
    assert (record.process, record.attempt, record.phase, record.step) == (
        *("watchdog-trainer", 1, "hanging", 7),
    )
    facts = record.facts
    assert (facts["at"], facts["loop_phase"]) == ("waiting for data", "training")
    assert (facts["silent_seconds"], facts["host"]) == (60.0, "pod-1")
    assert scene.look_at(75) == record
    later = scene.look_at(90)
    assert (later.facts["silent_seconds"], later.phase_seconds) == (90.0, 30.0)


def test_a_loop_that_goes_on_is_told_to_have_recovered_once(scene):
    scene.look_at(60)
    scene.where.at = COMPILING
    record = scene.look_at(75)
    assert (record.phase, record.facts["at"]) == ("recovered", "taking a step")
    assert "stack" not in record.facts
    assert scene.look_at(600) == record


def test_a_place_that_takes_long_has_more_patience_and_so_has_a_slow_pace(store, clock):
    scene = Scene(store, clock, least_patience=lambda: 200.0)
    assert scene.look_at(199) is None
    scene.where.at = COMPILING
    assert scene.look_at(199 + 599) is None
    assert scene.look_at(199 + 600).facts["at"] == "taking a step"


def test_an_old_attempt_writes_nothing_over_a_newer_ones_word(store, clock):
    newer = Scene(store, clock, attempt=2)
    newer.look_at(60)
    old = Scene(store, clock, attempt=1)
    assert old.look_at(200).attempt == 2


def test_the_stack_is_of_the_loops_thread_innermost_first_and_not_too_long(store, clock):
    entered, leave = threading.Event(), threading.Event()

    def read_a_record_that_never_comes():
        entered.set()
        leave.wait(PATIENCE)

    thread = threading.Thread(target=read_a_record_that_never_comes)
    thread.start()
    assert entered.wait(PATIENCE)
    stack = stack_of(thread.ident)
    leave.set()
    thread.join()
    assert "threading.py:" in stack.split(" < ")[0]
    assert "services/test_watchdog.py" in stack
    assert "read_a_record_that_never_comes" in stack

    def deep(depth):
        return deep(depth - 1) if depth else stack_of(threading.get_ident())

    frames = deep(20).split(" < ")
    assert [frame.split()[-1] for frame in frames] == ["stack_of", *["deep"] * 7]
    assert len(deep(20)) <= 1500


def test_a_store_that_is_away_ends_nothing(store, clock, caplog):
    away = [True]
    refused = threading.Event()
    told = threading.Event()

    def be_away(operation, name):
        if away[0] and operation != "get":
            refused.set()
            raise StoreUnavailableError("away")

    def listen(operation, name):
        if operation == "replace":
            told.set()

    scene = Scene(HookedStore(store, before=be_away, after=listen), clock, look_seconds=0.001)
    clock.now = 100.0
    with scene.dog:
        assert refused.wait(PATIENCE)
        away[0] = False
        assert told.wait(PATIENCE)
    assert "the watchdog's record can't be written" in caplog.text


def test_the_end_of_the_loop_and_the_next_process_both_say_that_it_hangs_no_more(store, clock):
    told = threading.Event()
    hooked = HookedStore(store, after=lambda operation, name: operation == "replace" and told.set())
    scene = Scene(hooked, clock, look_seconds=0.001)
    clock.now = 60.0
    with scene.dog:
        assert told.wait(PATIENCE)
    assert read_heartbeat(store, "watchdog-trainer").phase == "recovered"

    Heartbeat(store, "watchdog-trainer", attempt=1, surroundings=clock.surroundings).beat("hanging")
    told.clear()
    with Scene(hooked, clock, attempt=2).dog:
        assert told.wait(PATIENCE)
    record = read_heartbeat(store, "watchdog-trainer")
    assert (record.phase, record.attempt) == ("recovered", 2)
