"""What kube-state-metrics and cAdvisor would say of a run's pods, for Prometheus to scrape."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge

from tandem.telemetry.health import Health
from tandem.telemetry.server import serve
from tests.deploy.dashboards.runs import NAMESPACE


@contextlib.contextmanager
def exporting(run: str) -> Iterator[str]:
    """The address of an exporter that knows a trainer, an evaluator, and one that was killed."""
    registry = CollectorRegistry()
    _describe(registry, run)
    health = Health(patience_seconds=60)
    server = serve(registry, health, host="127.0.0.1", port=0)
    try:
        yield f"127.0.0.1:{server.port}"
    finally:
        server.close()


def _describe(registry: CollectorRegistry, run: str) -> None:
    def gauge(name: str, value: float, **labels: str) -> None:
        if name not in made:
            made[name] = Gauge(name, name, ["namespace", *labels], registry=registry)
        made[name].labels(namespace=NAMESPACE, **labels).set(value)

    made: dict[str, Gauge] = {}
    cpu = Counter(
        "container_cpu_usage_seconds",
        "CPU time used.",
        ["namespace", "pod", "container"],
        registry=registry,
    )
    for component, restarts, gibibytes in (("trainer", 0, 5.2), ("evaluator", 2, 3.1)):
        pod = f"{run}-{component}-7c9d5-x2v8k"
        gauge("kube_pod_status_phase", 1, pod=pod, phase="Running")
        gauge("kube_pod_status_phase", 0, pod=pod, phase="Pending")
        gauge("kube_pod_status_unschedulable", 0, pod=pod)
        of = {"pod": pod, "container": component}
        gauge("kube_pod_container_status_restarts_total", restarts, **of)
        gauge("kube_pod_container_status_waiting_reason", 0, **of, reason="CrashLoopBackOff")
        ended = int(restarts > 0)
        gauge("kube_pod_container_status_last_terminated_reason", ended, **of, reason="OOMKilled")
        gauge("container_memory_working_set_bytes", gibibytes * 2**30, **of)
        limits = "kube_pod_container_resource_limits"
        gauge(limits, 8 * 2**30, **of, resource="memory", unit="byte")
        gauge(limits, 4, **of, resource="cpu", unit="core")
        clock = cpu.labels(NAMESPACE, pod, component)
        clock.inc(100)
