"""The stores of a process, opened so that what is asked of them is measured."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from tandem.checkpoints.gcs_locations import is_remote
from tandem.checkpoints.measuring import Operation, RecentRequests, RequestOutcome
from tandem.checkpoints.objects import ObjectStore
from tandem.checkpoints.opening import open_store
from tandem.telemetry.process_metrics import StoreMetrics


class Stores:
    """Opens stores; metrics are only of those in buckets, `requests` are of all.

    Args:
        registry: of the metrics.
        locations: that will be opened.
        credentials_seconds: how long credentials may take.
    """

    def __init__(
        self, registry: CollectorRegistry, *locations: str | None, credentials_seconds: float
    ) -> None:
        self.requests = RecentRequests()
        self._credentials_seconds = credentials_seconds
        self._metrics: StoreMetrics | None = None
        if any(location is not None and is_remote(location) for location in locations):
            self._metrics = StoreMetrics(registry)

    def open(self, location: str) -> ObjectStore:
        """The store there; errors as of `open_store`."""
        return open_store(
            location,
            credentials_seconds=self._credentials_seconds,
            observer=self._observe_bucket if is_remote(location) else self.requests,
        )

    def _observe_bucket(
        self, operation: Operation, outcome: RequestOutcome, seconds: float | None
    ) -> None:
        self.requests(operation, outcome, seconds)
        if self._metrics is not None:
            self._metrics(operation, outcome, seconds)
