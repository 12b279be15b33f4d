"""Which checkpoints are kept: pure functions of what is known.

Held are the newest (damaged or not: it makes its attempt the head of the line), what each part of
the policy keeps of the readable ones, and those that are pinned or have a live lease. The rest is
to be retired.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from tandem.checkpoints.bests import best_entries
from tandem.checkpoints.ledger import LedgerView
from tandem.checkpoints.lines import Line
from tandem.checkpoints.names import CheckpointId, EvalSet
from tandem.checkpoints.policies import BestRule, RetentionPolicy


@dataclass(frozen=True)
class Knowledge:
    """What the decision depends on besides the line and the policy.

    Attributes:
        ledgers: by evaluation set; a checkpoint counts as evaluated once it is in all of them.
        pinned: checkpoints that someone pinned.
        leased: those with a live lease.
    """

    ledgers: Mapping[EvalSet, LedgerView] = field(default_factory=dict)
    pinned: Collection[CheckpointId] = ()
    leased: Collection[CheckpointId] = ()


def newest_of(checkpoints: Collection[CheckpointId], number: int) -> frozenset[CheckpointId]:
    """The `number` newest of some checkpoints."""
    return frozenset(sorted(checkpoints)[max(0, len(checkpoints) - number) :])


def first_of_each(checkpoints: Collection[CheckpointId], steps: int) -> frozenset[CheckpointId]:
    """The first checkpoint at or after each multiple (1, 2, ...) of so many steps.

    So one stays also where no checkpoint is at the multiple itself, after a preemption for example.
    """
    first: dict[int, CheckpointId] = {}
    for checkpoint in sorted(checkpoints):
        if checkpoint.step >= steps:
            first.setdefault(checkpoint.step // steps, checkpoint)
    return frozenset(first.values())


def best_of(
    checkpoints: Collection[CheckpointId], rule: BestRule, ledgers: Mapping[EvalSet, LedgerView]
) -> frozenset[CheckpointId]:
    """The best checkpoints of each evaluation set that a rule looks at."""
    return frozenset(
        entry.checkpoint
        for eval_set, ledger in ledgers.items()
        if rule.concerns(eval_set)
        for entry in best_entries(
            ledger.entries, metric=rule.metric, among=checkpoints, count=rule.count
        )
    )


def waiting_of(
    checkpoints: Collection[CheckpointId], number: int, ledgers: Mapping[EvalSet, LedgerView]
) -> frozenset[CheckpointId]:
    """The `number` newest of those that some evaluation set has no entry of yet."""
    evaluated = frozenset(checkpoints)
    for ledger in ledgers.values():
        evaluated &= ledger.recorded
    return newest_of(frozenset(checkpoints) - evaluated, number)


def held(line: Line, policy: RetentionPolicy, knowledge: Knowledge) -> frozenset[CheckpointId]:
    """The checkpoints that stay: the union of what each reason keeps."""
    readable, ledgers = line.readable, knowledge.ledgers
    kept = {*line.checkpoints[-1:], *knowledge.pinned, *knowledge.leased}
    kept |= newest_of(readable, policy.max_to_keep)
    if policy.keep_every_n_steps is not None:
        kept |= first_of_each(readable, policy.keep_every_n_steps)
    for rule in policy.best_rules:
        kept |= best_of(readable, rule, ledgers)
    return frozenset(kept | waiting_of(readable, policy.max_unevaluated, ledgers))


def to_retire(line: Line, kept: Collection[CheckpointId]) -> tuple[CheckpointId, ...]:
    """The line's checkpoints to retire, oldest first; those with an intent are under way."""
    return tuple(c for c in line.checkpoints if c not in kept and c not in line.retiring)
