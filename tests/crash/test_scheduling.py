"""The crash test's own ground: turns, clocks, deaths and stalls."""

import random

import pytest

from tandem.errors import ObjectNotFoundError, StoreUnavailableError
from tests.checkpoints.memory_store import MemoryStore
from tests.crash.crashing_store import CrashingStore
from tests.crash.faults import Fault, NoFaults, OneFault, Stall
from tests.crash.scheduling import EndlessError, Schedule
from tests.crash.witness import Witness


class Ground:
    """A store in memory and a schedule on it."""

    def __init__(self, *, faults=None, seed=1):
        self.store = MemoryStore()
        self.schedule = Schedule(random.Random(seed), max_operations=1000)
        self.witness = Witness(self.schedule, lease_seconds=60.0, traces=True)
        self.faults = faults or NoFaults()
        self.ended = []

    def start(self, name, program, *, after=0.0):
        def run(process):
            store = CrashingStore(
                self.store, process, self.schedule, faults=self, witness=self.witness
            )
            program(process, store)

        return self.schedule.start(name, run, after=after)

    def run(self):
        self.schedule.run(on_end=self.ended.append)

    def at(self, process, operation, name):
        return self.faults.at(process, operation, name)

    def stall(self, process):
        return self.faults.stall()


def _put_three(process, store):
    try:
        for number in range(3):
            store.create(f"{process.name}-{number}", b"")
    finally:
        store.create(f"{process.name}-last-word", b"")


@pytest.mark.parametrize(
    ("fault", "expected"),
    [(Fault.KILLED_BEFORE, ["a-0"]), (Fault.KILLED_AFTER, ["a-0", "a-1"])],
)
def test_a_killed_process_does_nothing_any_more_not_even_in_its_finally(fault, expected):
    ground = Ground(faults=OneFault("a", 2, fault))
    process = ground.start("a", _put_three)
    ground.run()
    assert ground.store.list("") == expected
    assert process.is_killed
    assert process.error is None


@pytest.mark.parametrize(("fault", "is_there"), [(Fault.FAILED, False), (Fault.UNCLEAR, True)])
def test_an_operation_that_is_reported_failed_may_have_been_done(fault, is_there):
    ground = Ground(faults=OneFault("a", 1, fault))
    process = ground.start("a", lambda process, store: store.create("x", b""))
    ground.run()
    assert isinstance(process.error, StoreUnavailableError)
    assert (ground.store.list("") == ["x"]) == is_there


@pytest.mark.parametrize(
    ("fault", "seen"), [(Fault.STALLED_BEFORE, []), (Fault.STALLED_AFTER, ["x"])]
)
def test_what_a_stalled_process_was_about_to_do_is_done_when_it_wakes(fault, seen):
    ground = Ground(faults=OneFault("sleeper", 1, fault, stall=Stall(100.0, 0)))
    found = []
    sleeper = ground.start("sleeper", lambda process, store: store.create("x", b""))
    ground.start("other", lambda process, store: found.extend(store.list("")), after=50.0)
    ground.run()
    assert found == seen
    assert ground.store.list("") == ["x"]
    assert ground.schedule.now >= 100.0
    assert sleeper.error is None


def test_a_stall_may_last_for_some_operations_of_the_others():
    ground = Ground(faults=OneFault("sleeper", 1, Fault.STALLED_BEFORE, stall=Stall(0.0, 2)))
    ground.start("sleeper", lambda process, store: store.create("x", b""))
    ground.start("a", _put_three, after=10.0)
    ground.run()
    assert [line.split()[1] for line in ground.witness.trace if "create" in line][-1] == "a"
    assert ground.store.list("") == ["a-0", "a-1", "a-2", "a-last-word", "x"]


def test_clocks_agree_on_how_long_a_second_is_and_on_nothing_else():
    ground, read = Ground(), {}

    def sleep(process, store):
        began = process.monotonic()
        process.sleep(30.0)
        read[process.name] = (began, process.monotonic() - began)

    for name in ("a", "b"):
        ground.start(name, sleep)
    ground.run()
    assert read["a"][0] != read["b"][0]
    assert read["a"][1] == pytest.approx(30.0)
    assert read["b"][1] == pytest.approx(30.0)


def test_processes_take_turns_in_an_order_that_only_the_seed_decides():
    def trace(seed):
        ground = Ground(seed=seed)
        for name in ("a", "b", "c"):
            ground.start(name, _put_three)
        ground.run()
        return ground.witness.trace

    assert trace(1) == trace(1)
    assert len({tuple(trace(seed)) for seed in range(5)}) == 5


def test_an_endless_schedule_is_ended():
    ground = Ground()

    def look_for_ever(process, store):
        while True:
            with pytest.raises(ObjectNotFoundError):
                store.get("x")

    process = ground.start("a", look_for_ever)
    with pytest.raises(EndlessError):
        ground.run()
    assert process.is_killed
