"""What is wrong, whose fault it is, and what to do next: the vocabulary of diagnosis."""

from __future__ import annotations

import shlex
from enum import Enum
from typing import NamedTuple

from tandem.status.facts import RunFacts

RESUME_SECONDS = 600.0
"""How long a process that was asked to stop may take to begin again, on another node perhaps."""


class Health(Enum):
    """How a run is; the order is from the one that wants someone most to the one that wants none.

    `UNKNOWN` is said where nobody could look, never `HEALTHY`.
    """

    BROKEN = "broken"
    UNKNOWN = "unknown"
    DEGRADED = "degraded"
    HEALTHY = "healthy"

    @property
    def rank(self) -> int:
        """0 is the worst."""
        return list(Health).index(self)


class Cause(Enum):
    """Whose fault it is: of the experiment's settings or our code, its data, the storage, ..."""

    OURS = "ours"
    DATA = "data"
    STORAGE = "storage"
    CLUSTER = "cluster"
    QUOTA = "quota"
    UNKNOWN = "unknown"


class Finding(NamedTuple):
    """One thing that is not as it should be.

    Attributes:
        code: its name, stable, for machines.
        health: what the run is because of it.
        cause: whose fault it is.
        text: for people, in one line.
        next_command: what to do now, safe to do without thinking; it changes nothing.
        alert: the alert whose runbook section says more.
    """

    code: str
    health: Health
    cause: Cause
    text: str
    next_command: str
    alert: str


class Commands:
    """Commands about one run that change nothing.

    Args:
        facts: say where the run is.
    """

    def __init__(self, facts: RunFacts) -> None:
        self._run = shlex.quote(facts.location)
        cluster = facts.cluster
        self._kubectl = f"kubectl -n {cluster.namespace}" if cluster else ""
        self._cluster = cluster

    @property
    def watch(self) -> str:
        """Looks at the run again and again."""
        where = f" -n {self._cluster.namespace}" if self._cluster else ""
        return f"tandem status {self._run}{where} --watch"

    @property
    def listing(self) -> str:
        """All checkpoints."""
        return f"tandem store ls {self._run}"

    @property
    def verify(self) -> str:
        """Reads every byte."""
        return f"tandem store verify {self._run}"

    @property
    def ledger(self) -> str:
        """All evaluations."""
        return f"tandem ledger {self._run}"

    @property
    def probe(self) -> str:
        """Tries what the processes do with the store, with an object of its own."""
        return f"tandem store probe {self._run}"

    def explain(self, step: int) -> str:
        """The story of a checkpoint."""
        return f"tandem explain {self._run} {step}"

    def logs(self, component: str, *, previous: bool = False) -> str:
        """A process's last words."""
        if self._cluster is None:
            return self.listing
        pods = self._cluster.of(component)
        if pods:
            before = " --previous" if previous and pods[0].restarts else ""
            return f"{self._kubectl} logs {pods[0].name} -c {component} --tail=50{before}"
        return self.describe(component)

    def describe(self, component: str) -> str:
        """What the cluster says of a process's pod, or of what should make it."""
        cluster = self._cluster
        if cluster is None:
            return self.listing
        pods = cluster.of(component)
        if pods:
            return f"{self._kubectl} describe pod {pods[0].name}"
        if component == "trainer" and cluster.job is not None:
            return f"{self._kubectl} describe job {cluster.job.name}"
        if component == "trainer":
            return f"{self._kubectl} get events --sort-by=.lastTimestamp"
        return (
            f"{self._kubectl} describe deployment -l app.kubernetes.io/instance={cluster.release},"
            f"app.kubernetes.io/component={component}"
        )
