"""Faults that are aimed at the seam of a rule: who stalls where, for the rule to show its worth.

Patterns are of `PROCESS OPERATION NAME`.
"""

import re
from typing import NamedTuple

from tests.crash.faults import Fault


class Aim(NamedTuple):
    """A fault, and a pattern that says where it may be."""

    where: str
    fault: Fault


def _stalled(where):
    return Aim(where, Fault.STALLED_BEFORE)


_TRAINER_COMMITS = r"trainer\S* create checkpoints/.*\.commit\.json"
_TRAINER_DECIDES = r"trainer\S* create checkpoints/.*\.retire\.json"
_READER_LEASES = r"(evaluator|exporter)\S* replace leases/"

COMMITS_LATE = (_stalled(_TRAINER_COMMITS),)
COMMITS_LATE_OR_NEVER = (*COMMITS_LATE, Aim(_TRAINER_COMMITS, Fault.KILLED_BEFORE))
READS_ITS_COMMIT_BACK_LATE = (
    Aim(_TRAINER_COMMITS, Fault.UNCLEAR),
    _stalled(r"trainer\S* get checkpoints/.*\.commit\.json"),
)
CLAIMS_LATE = (_stalled(r"trainer\S* create attempts/\d+\.json"),)
ENDS_LATE = (_stalled(r"trainer\S* create attempts/.*\.end\.json"), *COMMITS_LATE)
WRITES_THE_STATE_FILE_LATE = (_stalled(r"trainer\S* (get|replace) checkpoints/checkpoint"),)
SKIPS_LATE = (_stalled(r"trainer\S* create evaluations/.*-d\d\.json"),)
DECIDES_LATE = (_stalled(_TRAINER_DECIDES),)
LEASES_LATE = (_stalled(_READER_LEASES),)
LEASES_AND_DELETES_LATE = (
    _stalled(r"exporter\S* replace leases/"),
    Aim(r"trainer\S* list leases/ckpt", Fault.STALLED_AFTER),
)
LEASES_LATE_AND_LOOKS_AT_LEASES_LATE = (*LEASES_LATE, _stalled(r"trainer\S* list leases/"))
READS_LATE = (_stalled(r"(evaluator|exporter)\S* (download|local_path) "),)
SCORES_LATE = (
    _stalled(r"evaluator\S* create evaluations/.*-d\d\.json"),
    _stalled(r"evaluator\S* download "),
)

AIMS = (
    COMMITS_LATE,
    COMMITS_LATE_OR_NEVER,
    READS_ITS_COMMIT_BACK_LATE,
    CLAIMS_LATE,
    ENDS_LATE,
    WRITES_THE_STATE_FILE_LATE,
    SKIPS_LATE,
    DECIDES_LATE,
    LEASES_LATE,
    LEASES_AND_DELETES_LATE,
    LEASES_LATE_AND_LOOKS_AT_LEASES_LATE,
    READS_LATE,
    SCORES_LATE,
)


class AimedFaults:
    """Faults at random ones of the operations that they are aimed at, twice each at most."""

    def __init__(self, random, aims):
        self._random = random
        self._aims = [(re.compile(aim.where), aim.fault) for aim in aims]
        self._left = [2] * len(aims)

    def at(self, process, operation, name):
        place = f"{process.name} {operation} {name}"
        for i, (where, fault) in enumerate(self._aims):
            if self._left[i] and where.match(place) and self._random.random() < 0.5:
                self._left[i] -= 1
                return fault
        return None
