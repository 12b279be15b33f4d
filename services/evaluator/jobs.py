"""The trainer's Job, as the evaluator sees it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from tandem.errors import ClusterError
from tandem.kube.jobs import JobState
from tandem.kube.objects import Namespace

logger = logging.getLogger(__name__)

_LOOK_SECONDS = 10.0


class JobWatch:
    """Asks the cluster how far the trainer's Job is, not too often.

    Args:
        namespace: where the Job is; None outside of a cluster.
        name: the Job's; None when nobody says.
        monotonic: seconds.
    """

    def __init__(
        self,
        namespace: Namespace | None,
        name: str | None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._namespace = namespace
        self._name = name
        self._monotonic = monotonic
        self._looked_at = float("-inf")
        self._has_warned = False
        self.state: JobState | None = None
        """What the last look showed; None when the Job is not known, or the cluster doesn't say."""

    def look(self) -> JobState | None:
        """The Job's state, at most some seconds old."""
        if self._namespace is None or self._name is None:
            return None
        now = self._monotonic()
        if now - self._looked_at >= _LOOK_SECONDS:
            self._looked_at = now
            self.state = self._ask(self._namespace, self._name)
        return self.state

    def _ask(self, namespace: Namespace, name: str) -> JobState | None:
        try:
            return namespace.job_state(name)
        except ClusterError as error:
            if not self._has_warned:
                self._has_warned = True
                logger.warning("going on without a look at the trainer's Job: %s", error)
            return None
