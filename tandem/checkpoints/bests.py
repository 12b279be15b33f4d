"""The best checkpoint of an evaluation set: computed from the ledger, and its projection."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from typing import ClassVar

from tandem.checkpoints import names, writing
from tandem.checkpoints.ledger import EntryOutcome, LedgerEntry
from tandem.checkpoints.names import CheckpointId
from tandem.checkpoints.objects import ObjectStore
from tandem.checkpoints.policies import lower_is_better
from tandem.checkpoints.records import CheckpointField, Record, encode
from tandem.checkpoints.surroundings import SYSTEM, Surroundings
from tandem.errors import GenerationMismatchError

_logger = logging.getLogger(__name__)


class Best(Record):
    """The projection that names the best checkpoint of an evaluation set."""

    kind: ClassVar[str] = "best"
    eval_set: str
    set_digest: str
    metric: str
    value: float
    checkpoint: CheckpointField


def best_entries(
    entries: Iterable[LedgerEntry], *, metric: str, among: Collection[CheckpointId], count: int = 1
) -> tuple[LedgerEntry, ...]:
    """The scored entries of the best values, the best first, and of equals the earliest.

    Args:
        entries: of one evaluation set.
        metric: name of the metric; an entry without a value for it is never among the best.
        among: the checkpoints that count, i.e. those of the line.
        count: how many at most.
    """
    sign = 1.0 if lower_is_better(metric) else -1.0
    scored = [
        (sign * value, entry.checkpoint, entry)
        for entry in entries
        if entry.outcome is EntryOutcome.SCORED
        and (value := entry.metrics.get(metric)) is not None
        and entry.checkpoint in among
    ]
    return tuple(entry for *_, entry in sorted(scored, key=lambda found: found[:2])[:count])


def best_entry(
    entries: Iterable[LedgerEntry], *, metric: str, among: Collection[CheckpointId]
) -> LedgerEntry | None:
    """The scored entry of the best value, the earliest of equals; see `best_entries`."""
    return next(iter(best_entries(entries, metric=metric, among=among)), None)


def write_best(
    store: ObjectStore, entry: LedgerEntry, *, metric: str, surroundings: Surroundings = SYSTEM
) -> None:
    """Writes the projection `best/SET.json`; the next one to write it puts right what is late."""
    value = entry.metrics[metric]
    if value is None:
        raise ValueError(f"{entry.checkpoint} has no {metric}")
    name = names.best_name(entry.eval_set)
    standing = writing.find(store, name)
    best = Best(
        nonce=surroundings.nonce(),
        eval_set=entry.eval_set,
        set_digest=entry.set_digest,
        metric=metric,
        value=value,
        checkpoint=entry.checkpoint,
    )
    try:
        generation = standing.stat.generation if standing else None
        writing.replace(store, name, encode(best), generation=generation, surroundings=surroundings)
    except GenerationMismatchError:
        _logger.info("another process has just written %s", name)
