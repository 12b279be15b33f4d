"""Which checkpoints are kept: pure functions of what is known.

Held are the newest (damaged or not: it makes its attempt the head of the line), the `max_to_keep`
newest sound ones (at least one), the best of each evaluation set, those with a live lease, and of
those not yet evaluated the `max_unevaluated` newest. The rest is to be retired.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from tandem.checkpoints.lines import Line
from tandem.checkpoints.names import CheckpointId
from tandem.errors import ConfigError


@dataclass(frozen=True)
class RetentionPolicy:
    """How much is kept.

    Attributes:
        max_to_keep: how many of the newest checkpoints; 7 as in the Object Detection API.
        max_unevaluated: how many checkpoints may wait for the evaluator beyond that.
        best_metric: the metric that decides which checkpoint is the best of an evaluation set.
    """

    max_to_keep: int = 7
    max_unevaluated: int = 20
    best_metric: str = "DetectionBoxes_Precision/mAP"

    def __post_init__(self) -> None:
        if self.max_to_keep < 1:
            raise ConfigError(f"max_to_keep is {self.max_to_keep}; expected 1 or more")
        if self.max_unevaluated < 0:
            raise ConfigError(f"max_unevaluated is {self.max_unevaluated}; expected 0 or more")


def newest_of(checkpoints: Collection[CheckpointId], number: int) -> frozenset[CheckpointId]:
    """The `number` newest of some checkpoints."""
    return frozenset(sorted(checkpoints)[max(0, len(checkpoints) - number) :])


def held(
    line: Line,
    policy: RetentionPolicy,
    *,
    best: Collection[CheckpointId],
    leased: Collection[CheckpointId],
    evaluated: Collection[CheckpointId],
) -> frozenset[CheckpointId]:
    """The checkpoints that stay.

    Args:
        line: the run's line.
        policy: how much is kept.
        best: the best checkpoint of each evaluation set.
        leased: those with a live lease.
        evaluated: those with an entry in every evaluation set.
    """
    waiting = frozenset(line.readable) - frozenset(evaluated)
    return (
        frozenset({*line.checkpoints[-1:], *best, *leased})
        | newest_of(line.readable, policy.max_to_keep)
        | newest_of(waiting, policy.max_unevaluated)
    )


def to_retire(line: Line, kept: Collection[CheckpointId]) -> tuple[CheckpointId, ...]:
    """The line's checkpoints to retire, oldest first; those with an intent are under way."""
    return tuple(c for c in line.checkpoints if c not in kept and c not in line.retiring)
