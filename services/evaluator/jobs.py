"""The trainer's Job, as the evaluator sees it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from tandem.errors import ClusterError, ClusterNotFoundError, ClusterUnavailableError
from tandem.kube.jobs import JobPhase, JobState
from tandem.kube.objects import Namespace

logger = logging.getLogger(__name__)

_LOOK_SECONDS = 10.0
_KEEP_SECONDS = 900.0  # an upgrade of the control plane takes minutes
_SURE_LOOKS = 3  # a JobSet makes a failed Job anew, by the same name


class JobWatch:
    """Asks the cluster how far the trainer's Job is, not too often.

    While the API server is out of reach the Job is taken to be as it was, for a quarter of an hour.
    One that is found failed, or not found, several times in a row is so for good.

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
        self._answered_at = monotonic()
        self._num_bad_looks = 0  # in a row
        self._has_warned = False
        self.state: JobState | None = None
        """What the last look showed; None when the Job is gone, or the cluster doesn't say."""
        if namespace is not None and name is not None:
            self.state = JobState(JobPhase.WAITING)  # until an answer says otherwise

    def look(self) -> JobState | None:
        """The Job's state, at most some seconds old."""
        if self._namespace is None or self._name is None:
            return None
        now = self._monotonic()
        if now - self._looked_at >= _LOOK_SECONDS:
            self._looked_at = now
            self.state = self._ask(self._namespace, self._name, now)
        return self.state

    def _ask(self, namespace: Namespace, name: str, now: float) -> JobState | None:
        try:
            state = namespace.job_state(name)
        except ClusterUnavailableError as error:
            self._warn(error)
            return self.state if now - self._answered_at < _KEEP_SECONDS else None
        except ClusterNotFoundError:
            return self._unless_sure(None, now)
        except ClusterError as error:
            self._warn(error)
            return None
        if state.phase is JobPhase.FAILED:
            return self._unless_sure(state, now)
        self._answered_at, self._num_bad_looks = now, 0
        return state

    def _unless_sure(self, found: JobState | None, now: float) -> JobState | None:
        self._answered_at = now
        self._num_bad_looks += 1
        return found if self._num_bad_looks >= _SURE_LOOKS else self.state

    def _warn(self, error: ClusterError) -> None:
        if not self._has_warned:
            self._has_warned = True
            logger.warning("going on without a look at the trainer's Job: %s", error)
