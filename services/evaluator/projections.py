"""TensorBoard, Prometheus and `best/` from ledger entries."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import get_args

import tensorflow as tf

from services.events import EventFolder
from tandem.checkpoints.bests import best_entry, write_best
from tandem.checkpoints.ledger import EntryOutcome, LedgerEntry
from tandem.checkpoints.names import CheckpointId, EvalSet
from tandem.checkpoints.objects import ObjectStore
from tandem.checkpoints.surroundings import SYSTEM, Surroundings, seconds_since_1970
from tandem.evaluation.coco_metrics import TAGS
from tandem.telemetry.evaluator_metrics import EvaluatorMetrics
from tandem.telemetry.labels import CocoMetric

logger = logging.getLogger(__name__)

BEST_METRIC = TAGS["ap"]

_ALWAYS_WRITTEN = "Loss/regularization_loss"
_TAG_OF: dict[CocoMetric, str] = dict(zip(get_args(CocoMetric), TAGS.values(), strict=True))


class Projections:
    """Keeps everything that can be computed from one eval set's ledger up to date.

    Args:
        store: where results go.
        events: TensorBoard's folder of the set.
        eval_set: the set.
        metrics: Prometheus metrics of this process.
        on_best: told of each new best.
        surroundings: randomness.
    """

    def __init__(
        self,
        store: ObjectStore,
        events: EventFolder,
        *,
        eval_set: EvalSet,
        metrics: EvaluatorMetrics,
        on_best: Callable[[LedgerEntry], None],
        surroundings: Surroundings = SYSTEM,
    ) -> None:
        self._store = store
        self._on_best = on_best
        self._surroundings = surroundings
        self._events = events
        self._eval_set = eval_set
        self._metrics = metrics
        self._written = events.steps(_ALWAYS_WRITTEN)  # so that a restart doubles no point
        self._best: LedgerEntry | None = None

    def update(self, entries: Collection[LedgerEntry], *, among: Collection[CheckpointId]) -> None:
        """Shows the entries that are not shown yet.

        Args:
            entries: of this set.
            among: the checkpoints of the line; the best is one of them.
        """
        scored = sorted(
            (entry for entry in entries if entry.outcome is EntryOutcome.SCORED),
            key=lambda entry: entry.checkpoint,
        )
        if not scored:
            return
        self._write_events(
            [entry for entry in scored if entry.checkpoint.step not in self._written]
        )
        newest = scored[-1]
        self._metrics.show_scored(
            self._eval_set.name,
            step=newest.checkpoint.step,
            metrics=_by_short_name(newest),
            completed_at=seconds_since_1970(newest.recorded_at),
        )
        self._show_best(best_entry(scored, metric=BEST_METRIC, among=among))
        ever = best_entry(scored, metric=BEST_METRIC, among={entry.checkpoint for entry in scored})
        if ever is not None:
            self._metrics.show_best_on_disk(self._eval_set.name, on_disk=ever.checkpoint in among)

    def _write_events(self, entries: list[LedgerEntry]) -> None:
        if not entries:
            return
        for entry in entries:
            with self._events.at(entry.checkpoint.step):
                for tag, value in entry.metrics.items():
                    if value is not None:
                        tf.summary.scalar(tag, value)
            self._written.add(entry.checkpoint.step)
        self._events.flush()

    def _show_best(self, best: LedgerEntry | None) -> None:
        if best is None or best == self._best:
            return
        self._best = best
        self._metrics.show_best(
            self._eval_set.name, step=best.checkpoint.step, metrics=_by_short_name(best)
        )
        self._on_best(best)
        write_best(self._store, best, metric=BEST_METRIC, surroundings=self._surroundings)


def _by_short_name(entry: LedgerEntry) -> dict[CocoMetric, float | None]:
    return {short: entry.metrics.get(tag) for short, tag in _TAG_OF.items()}
