"""What can befall a process at one operation on the store, and plans of what befalls whom when."""

import re
from enum import Enum
from typing import NamedTuple


class Fault(Enum):
    KILLED_BEFORE = "killed before"
    KILLED_AFTER = "killed after"
    FAILED = "failed, not applied"
    UNCLEAR = "applied, reported failed"
    STALLED_BEFORE = "stalled before"
    STALLED_AFTER = "stalled after"


class Stall(NamedTuple):
    """How long a stalled process stands still: seconds, and operations of the others."""

    seconds: float
    operations: int


_NO_STALL = Stall(0.0, 0)


class NoFaults:
    """All goes well."""

    def at(self, process, operation, name):
        return None

    def stall(self):
        raise AssertionError("nobody was to stall")


class OneFault:
    """One fault, at one operation of one process."""

    def __init__(self, process, number, fault, *, stall=_NO_STALL):
        self._process, self._number, self._fault = process, number, fault
        self._stall = stall

    def at(self, process, operation, name):
        is_there = process.operations == self._number and process.name == self._process
        return self._fault if is_there else None

    def stall(self):
        return self._stall


MUTATIONS = frozenset({"create", "create_from_file", "replace", "delete"})
_KILLS = (Fault.KILLED_BEFORE, Fault.KILLED_AFTER)
_STALLS = (Fault.STALLED_BEFORE, Fault.STALLED_BEFORE, Fault.STALLED_AFTER)
_ERRORS = (Fault.FAILED, Fault.UNCLEAR, Fault.UNCLEAR)


# Where the rules have their seams, between what was looked at and what is done about it; and how
# often a schedule has its faults there.
FOCI = {
    r"create attempts/\d+\.json": 3,
    r"create attempts/\d+\.end\.json": 1,
    r"create checkpoints/.*\.commit\.json": 5,
    r"create checkpoints/.*\.retire\.json": 3,
    r"create evaluations/.*-d\d\.json": 3,
    r"create_from_file ": 2,
    r"delete checkpoints/.*\.commit\.json": 1,
    r"delete checkpoints/.*\.(index|data.*|retire\.json)": 1,
    r"delete leases/": 1,
    r"(download|local_path) ": 1,
    r"get checkpoints/.*\.commit\.json": 2,
    r"list attempts/": 2,
    r"list checkpoints/ckpt-.*": 1,
    r"list evaluations/": 1,
    r"list leases/": 1,
    r"list pins/": 1,
    r"replace checkpoints/checkpoint": 2,
    r"replace leases/": 2,
}


class RandomFaults:
    """Faults at random operations, so many of each kind at most; then all goes well.

    Operations that change something are hit more often, and those of the schedule's focus much more
    often. An error may be the first of several: a store that is out of reach for one process for a
    while.
    """

    def __init__(self, random, *, kills, stalls, errors, rate, lease_seconds):
        self._random = random
        self._left = {_KILLS: kills, _STALLS: stalls, _ERRORS: errors}
        self._rate = rate
        self._lease_seconds = lease_seconds
        foci = random.choices(list(FOCI), list(FOCI.values()), k=random.choice((1, 1, 1, 2, 3)))
        self._focus = re.compile("|".join(foci))
        self._focus_rate = random.choice((0.0, 0.2, 0.5))
        self._outages = {}

    def at(self, process, operation, name):
        random = self._random
        if self._outages.get(process, 0) > 0:
            self._outages[process] -= 1
            return random.choice(_ERRORS)
        if random.random() >= self._rate_of(operation, name):
            return None
        kinds = [kind for kind, left in self._left.items() if left > 0]
        if not kinds:
            return None
        kind = random.choice(kinds)
        self._left[kind] -= 1
        if kind is _ERRORS and random.random() < 0.25:
            self._outages[process] = random.randint(1, 14)
        return random.choice(kind)

    def stall(self):
        random = self._random
        if random.random() < 0.5:
            return Stall(0.0, random.choice((3, 10, 30, 80, 200)))
        return Stall(self._lease_seconds * random.choice((0.3, 0.9, 1.1, 1.5, 3.0)), 0)

    def _rate_of(self, operation, name):
        if self._focus.match(f"{operation} {name}"):
            return max(self._focus_rate, self._rate)
        return self._rate * (4 if operation in MUTATIONS else 1)
