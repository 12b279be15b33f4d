"""Ledger entries: what became of a checkpoint in an eval set."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from services.evaluator.sources import Readable, Source
from tandem.checkpoints.commits import Commit
from tandem.checkpoints.ledger import EntryOutcome, LedgerEntry, record_entry
from tandem.checkpoints.names import CheckpointId
from tandem.checkpoints.objects import ObjectStore
from tandem.checkpoints.surroundings import SYSTEM, Surroundings
from tandem.checkpoints.tries import MAX_TRIES, read_tries

if TYPE_CHECKING:  # recording needs no TensorFlow
    from tandem.evaluation.build import EvalTask
    from tandem.evaluation.scoring import Evaluation

logger = logging.getLogger(__name__)


class Recorder:
    """Records the one entry of a checkpoint and an eval set, for one process.

    Args:
        results: store of the ledger.
        source: of the checkpoints.
        name: the process, for people.
        surroundings: wall clock, randomness.
    """

    def __init__(
        self,
        results: ObjectStore,
        source: Source,
        *,
        name: str,
        surroundings: Surroundings = SYSTEM,
    ) -> None:
        self._results = results
        self._source = source
        self._surroundings = surroundings
        self.name = name

    def scored(
        self,
        checkpoint: CheckpointId,
        task: EvalTask,
        *,
        readable: Readable,
        evaluation: Evaluation,
        seconds: float,
    ) -> bool:
        """Records the numbers; False when another evaluator's entry stands."""
        metrics = evaluation.metrics.by_tag(include_categories=task.include_categories)
        is_first = self._record(
            checkpoint,
            task,
            EntryOutcome.SCORED,
            metrics={**metrics, **_finite(evaluation.losses)},
            images_expected=evaluation.num_expected,
            images_read=evaluation.num_read,
            images_scored=evaluation.num_scored,
            durations_seconds={
                "model": evaluation.model_seconds,
                "metrics": evaluation.metrics_seconds,
                "total": seconds,
            },
            unverified=readable.unverified,
            **_from_commit(readable.commit),
        )
        if not is_first:
            logger.warning("checkpoint %s was scored by another evaluator first", checkpoint)
            return False
        logger.info(
            "checkpoint %s%s: AP %s, AP@0.5 %s on %d images in %.1f s",
            checkpoint,
            f" on {task.eval_set.name}" if task.eval_set.name else "",
            _shown(evaluation.metrics.ap),
            _shown(evaluation.metrics.ap50),
            evaluation.num_scored,
            seconds,
        )
        return True

    def given_up(self, checkpoint: CheckpointId, task: EvalTask, known: list[str]) -> None:
        """Records that all tries failed, and why.

        Args:
            checkpoint: the checkpoint.
            task: the eval set's.
            known: failures that this process saw; those of others are in the tries that followed.
        """
        tries = read_tries(self._results, checkpoint, task.eval_set)
        reasons = [t.last_failure for t in tries if t.last_failure] + known[-1:]
        self._record(
            checkpoint,
            task,
            EntryOutcome.FAILED,
            reasons=tuple(dict.fromkeys(reasons)) or (f"{MAX_TRIES} tries began and none ended",),
        )
        logger.error("checkpoint %s is given up after %d tries", checkpoint, MAX_TRIES)

    def damaged(self, checkpoint: CheckpointId, task: EvalTask) -> None:
        """Records that the checkpoint's bytes are not those that were committed."""
        reason = self._source.damage(checkpoint)
        self._record(checkpoint, task, EntryOutcome.FAILED, reasons=(reason,))

    def _record(
        self, checkpoint: CheckpointId, task: EvalTask, outcome: EntryOutcome, **facts: object
    ) -> bool:
        entry = LedgerEntry.model_validate(
            {
                "nonce": self._surroundings.nonce(),
                "checkpoint": checkpoint,
                "eval_set": task.eval_set.name,
                "set_digest": task.eval_set.digest,
                "outcome": outcome,
                "recorded_by": self.name,
                "recorded_at": self._surroundings.timestamp(),
                **facts,
            }
        )
        return record_entry(self._results, entry, surroundings=self._surroundings)


def _from_commit(commit: Commit | None) -> dict[str, object]:
    if commit is None:
        return {}
    return {
        "config_digest": commit.config_digest,
        "samples_seen": commit.samples_seen,
        "training_seconds": commit.training_seconds,
    }


def _finite(losses: Mapping[str, float]) -> dict[str, float | None]:
    """Diverged weights have a loss that no chart can show; their COCO metrics count even so."""
    return {tag: value if math.isfinite(value) else None for tag, value in losses.items()}


def _shown(value: float | None) -> str:
    return "n/a (no ground truth)" if value is None else f"{value:.4f}"
