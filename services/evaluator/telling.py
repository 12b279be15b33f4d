"""What the evaluator tells its cluster of the results."""

from __future__ import annotations

from tandem.checkpoints.ledger import LedgerEntry
from tandem.kube.reporting import Reporter


class BestTeller:
    """Tells the best checkpoint of each eval set.

    Args:
        reporter: passes it on.
        metric: tag of the metric that is compared.
    """

    def __init__(self, reporter: Reporter, *, metric: str) -> None:
        self._reporter = reporter
        self._metric = metric
        self._bests: dict[str, LedgerEntry] = {}

    def __call__(self, best: LedgerEntry) -> None:
        """Tells a best, which is news unless it is the first that this process knows of."""
        name = best.eval_set
        is_news = name in self._bests
        self._bests[name] = best
        self._reporter.annotate(
            best_metric=", ".join(self._shown(entry) for _, entry in sorted(self._bests.items()))
        )
        if is_news:
            self._reporter.event("NewBest", f"{self._metric} {self._shown(best)}")

    def _shown(self, entry: LedgerEntry) -> str:
        value = entry.metrics.get(self._metric)
        where = f" on {entry.eval_set}" if entry.eval_set else ""
        return f"{value or 0.0:.4f} at step {entry.checkpoint.step}{where}"
