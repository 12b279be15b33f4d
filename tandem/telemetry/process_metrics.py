"""Metrics that both processes export: of the process itself, and of its bucket."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from tandem.telemetry.catalogue import BOTH, STORE
from tandem.telemetry.definitions import Made
from tandem.telemetry.labels import StoreOperation, StoreOutcome


class ProcessMetrics:
    """What a trainer and an evaluator export alike."""

    def __init__(self, registry: CollectorRegistry) -> None:
        made = Made(registry, BOTH)
        self._verify_failures = made.counter("tandem_ckpt_verify_failures_total")
        self._build = made.gauge("tandem_build_info")

    def show_software(self, *, version: str, image: str) -> None:
        """Says what runs."""
        self._build.labels(version, image).set(1)

    def count_verify_failure(self) -> None:
        """Counts a checkpoint that was found damaged."""
        self._verify_failures.inc()


class StoreMetrics:
    """Requests to a bucket; an observer of `tandem.checkpoints.measuring`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        made = Made(registry, STORE)
        self._requests = made.counter("tandem_gcs_requests_total")
        self._seconds = made.histogram("tandem_gcs_seconds")

    def __call__(
        self, operation: StoreOperation, outcome: StoreOutcome, seconds: float | None
    ) -> None:
        """Counts a request; None: nobody measured its time."""
        self._requests.labels(operation, outcome).inc()
        if seconds is not None:
            self._seconds.labels(operation).observe(seconds)
