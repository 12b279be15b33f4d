"""TensorBoard, Prometheus and `best/` from ledger entries."""

from __future__ import annotations

import logging
from collections.abc import Collection
from datetime import datetime
from pathlib import Path
from typing import Any, get_args

import tensorflow as tf
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from tandem.checkpoints.bests import best_entry, write_best
from tandem.checkpoints.ledger import EntryOutcome, LedgerEntry
from tandem.checkpoints.names import CheckpointId, EvalSet, events_folder
from tandem.checkpoints.objects import ObjectStore
from tandem.evaluation.coco_metrics import TAGS
from tandem.telemetry.metrics import CocoMetric, EvaluatorMetrics

logger = logging.getLogger(__name__)

BEST_METRIC = TAGS["ap"]

_ALWAYS_WRITTEN = "Loss/regularization_loss"
_TAG_OF: dict[CocoMetric, str] = dict(zip(get_args(CocoMetric), TAGS.values(), strict=True))


class Projections:
    """Keeps everything that can be computed from one eval set's ledger up to date.

    Args:
        store: where results go.
        run: its location, for TensorBoard.
        eval_set: the set.
        metrics: Prometheus metrics of this process.
    """

    def __init__(
        self, store: ObjectStore, *, run: str, eval_set: EvalSet, metrics: EvaluatorMetrics
    ) -> None:
        self._store = store
        self._eval_set = eval_set
        self._metrics = metrics
        self._folder = Path(run) / events_folder(eval_set.name)
        self._written = _steps_in(self._folder)
        self._best: LedgerEntry | None = None
        self._writer: Any = None

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
            completed_at=_seconds_since_1970(newest.recorded_at),
        )
        self._show_best(best_entry(scored, metric=BEST_METRIC, among=among))

    def _write_events(self, entries: list[LedgerEntry]) -> None:
        if not entries:
            return
        if self._writer is None:  # so that a run without scores has no empty event file
            self._writer = tf.summary.create_file_writer(str(self._folder))
        for entry in entries:
            with self._writer.as_default(step=entry.checkpoint.step):
                for tag, value in entry.metrics.items():
                    if value is not None:
                        tf.summary.scalar(tag, value)
            self._written.add(entry.checkpoint.step)
        self._writer.flush()

    def _show_best(self, best: LedgerEntry | None) -> None:
        if best is None or best == self._best:
            return
        self._best = best
        self._metrics.show_best(
            self._eval_set.name, step=best.checkpoint.step, metrics=_by_short_name(best)
        )
        write_best(self._store, best, metric=BEST_METRIC)


def _by_short_name(entry: LedgerEntry) -> dict[CocoMetric, float | None]:
    return {short: entry.metrics.get(tag) for short, tag in _TAG_OF.items()}


def _seconds_since_1970(timestamp: str) -> float:
    return datetime.strptime(timestamp, "%Y-%m-%dT%H:%M:%S%z").timestamp()


def _steps_in(folder: Path) -> set[int]:
    """Steps that earlier processes wrote, so that a restart doubles no point."""
    if not folder.is_dir():
        return set()
    events = EventAccumulator(str(folder), size_guidance={"tensors": 0})
    events.Reload()
    if _ALWAYS_WRITTEN not in events.Tags()["tensors"]:
        return set()
    return {event.step for event in events.Tensors(_ALWAYS_WRITTEN)}
