"""From numbers to schedules: the same number is the same schedule, wherever it runs."""

import contextlib
import logging
import random
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tandem.checkpoints import records
from tests.crash.aims import Aim, AimedFaults
from tests.crash.backends import LocalBackend, MemoryBackend
from tests.crash.faults import Fault, RandomFaults, Stall
from tests.crash.scenarios import LEASE_SECONDS, Scenario, random_scenario
from tests.crash.scheduling import Process
from tests.crash.witness import ViolationError
from tests.crash.worlds import World

_SHARED_MEMORY = Path("/dev/shm")


class Result(NamedTuple):
    """What became of a schedule.

    Attributes:
        number: of the schedule.
        violation: the promise that was broken; None when all were kept.
        what: how it was broken.
        trace: a line per operation, when asked for.
        operations: on the store.
        seen: how often rare things took place.
    """

    number: int
    violation: str | None
    what: str
    trace: tuple[str, ...]
    operations: int
    seen: Mapping[str, int]


@contextlib.contextmanager
def scratch_folder():
    """An empty folder, in memory where the system has such a place."""
    parent = _SHARED_MEMORY if _SHARED_MEMORY.is_dir() else None
    folder = Path(tempfile.mkdtemp(prefix="tandem-crash-", dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextlib.contextmanager
def quiet():
    """Processes that crash log a lot."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


@contextlib.contextmanager
def quick():
    """Bytes that were once found to be a whole record's are not looked at again."""
    check, seen = records._checked_payload, {}

    def checked_payload(data, *, name):
        if data not in seen:
            seen[data] = check(data, name=name)
        return dict(seen[data])

    records._checked_payload = checked_payload
    try:
        yield
    finally:
        records._checked_payload = check


def run_schedule(scenario, *, seed, faults, folder, number=0, backend="memory", traces=False):
    """Runs one schedule in a folder, which is empty before and after."""
    run = folder / "run"
    run.mkdir()
    world = World(
        scenario,
        seed=seed,
        backend=MemoryBackend() if backend == "memory" else LocalBackend(run),
        faults=faults,
        scratch=folder if backend == "memory" else run,
        traces=traces,
    )
    violation = None
    with quiet(), quick():
        try:
            world.run()
        except ViolationError as error:
            violation = error
    for path in folder.iterdir():
        shutil.rmtree(path)
    return Result(
        number,
        violation.promise if violation else None,
        str(violation) if violation else "",
        tuple(world.witness.trace or ()),
        world.schedule.operations,
        world.witness.seen,
    )


class _Faults:
    """A scenario's faults: those that are aimed, and those anywhere."""

    def __init__(self, randomness: random.Random, scenario: Scenario) -> None:
        self._aimed = AimedFaults(randomness, scenario.aims)
        self._random = RandomFaults(
            randomness,
            kills=scenario.kills,
            stalls=scenario.stalls,
            errors=scenario.errors,
            rate=scenario.fault_rate,
            lease_seconds=LEASE_SECONDS,
        )

    def at(self, process: Process, operation: str, name: str) -> Fault | None:
        aimed = self._aimed.at(process, operation, name)
        return aimed or self._random.at(process, operation, name)

    def stall(self) -> Stall:
        return self._random.stall()


def run_random_schedule(
    number: int,
    *,
    seed: int,
    folder: Path,
    backend: str = "memory",
    aims: Sequence[Aim] = (),
    traces: bool = False,
) -> Result:
    """The schedule of a number, all of it drawn from the seed and the number.

    Args:
        number: of the schedule.
        seed: of all schedules.
        folder: an empty one, and empty again afterwards.
        backend: `memory` or `local`.
        aims: the only faults, instead of all kinds anywhere.
        traces: whether to keep a line per operation.
    """
    scenario = random_scenario(random.Random(f"scenario {seed} {number}"))
    if aims:
        scenario = scenario._replace(aims=aims, exports=6, pins=2, damages=0, poisons=0)
        scenario = scenario._replace(kills=0, stalls=0, errors=0, reactions=0.9)
    return run_schedule(
        scenario,
        seed=f"schedule {seed} {number}",
        faults=lambda randomness: _Faults(randomness, scenario),
        folder=folder,
        number=number,
        backend=backend,
        traces=traces,
    )


def run_random_schedules(
    numbers: Iterable[int], *, seed: int, backend: str = "memory", aims: Sequence[Aim] = ()
) -> Iterator[Result]:
    """The results of some numbers' schedules, in order."""
    with scratch_folder() as folder:
        for number in numbers:
            yield run_random_schedule(number, seed=seed, folder=folder, backend=backend, aims=aims)
