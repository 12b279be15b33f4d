"""What Kubernetes says of a run's pods."""

from __future__ import annotations

from deploy.dashboards.panels import Panel, Query, graph
from deploy.dashboards.tables import table

_PODS = 'namespace="$namespace", pod=~"$run-(trainer|evaluator|tensorboard)-.*"'
_CONTAINERS = f'{_PODS}, container=~"trainer|evaluator|tensorboard"'


def pods() -> list[Panel]:
    """What Kubernetes says of the run's pods."""
    used, limits = "container_memory_working_set_bytes", "kube_pod_container_resource_limits"
    return [
        table(
            "Pods",
            "Phase of each pod of the run, why a container waits, how the last one ended "
            "(OOMKilled: too little memory), and how often it started again.",
            Query(f"max by (pod, phase) (kube_pod_status_phase{{{_PODS}}} == 1)"),
            Query(
                f"sum by (pod) (kube_pod_container_status_restarts_total{{{_PODS}}})", "restarts"
            ),
            Query(
                "max by (pod, reason)"
                f" (kube_pod_container_status_last_terminated_reason{{{_PODS}}} == 1)",
            ),
            keys={"pod": "pod", "phase": "phase", "reason": "last ended by"},
            width=8,
            height=6,
        ),
        graph(
            "Waiting and unschedulable pods",
            "Containers that wait, by reason (ImagePullBackOff, CrashLoopBackOff, ...), and pods "
            "that no node takes.",
            Query(
                "sum by (reason) (kube_pod_container_status_waiting_reason{" + _PODS + "})",
                "{{reason}}",
            ),
            Query(f"sum(kube_pod_status_unschedulable{{{_PODS}}})", "unschedulable", "red"),
            width=4,
            unit="none",
            steps=True,
        ),
        graph(
            "Memory",
            "In use by each container; dashed, its limit, at which it is killed.",
            Query(f"max by (container) ({used}{{{_CONTAINERS}}})", "{{container}}"),
            Query(
                f'max by (container) ({limits}{{{_CONTAINERS}, resource="memory"}})',
                "limit of {{container}}",
                dashed=True,
            ),
            width=6,
            unit="bytes",
        ),
        graph(
            "CPU",
            "In use by each container; dashed, its limit.",
            Query(
                "sum by (container) (rate(container_cpu_usage_seconds_total{"
                + _CONTAINERS
                + "}[$__rate_interval]))",
                "{{container}}",
            ),
            Query(
                f'max by (container) ({limits}{{{_CONTAINERS}, resource="cpu"}})',
                "limit of {{container}}",
                dashed=True,
            ),
            width=6,
            unit="none",
        ),
    ]
