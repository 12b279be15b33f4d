"""What follows the end of a watch: telling it, and staying up where an exit would be a restart."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable

from services.evaluator.settings import EvaluatorSettings
from services.evaluator.watch import Ending
from services.signals import StopRequest
from tandem.checkpoints.heartbeats import Heartbeat
from tandem.errors import (
    ClusterError,
    ClusterRefusedError,
    ClusterUnavailableError,
    StoreUnavailableError,
)
from tandem.kube.jobs import JobPhase, JobState
from tandem.kube.objects import Namespace
from tandem.kube.reporting import Reporter
from tandem.telemetry.evaluator_metrics import EvaluatorMetrics
from tandem.telemetry.health import Health

logger = logging.getLogger(__name__)

_LOOK_SECONDS = 30.0
_PATIENCE_SECONDS = 600.0


class Aftermath:
    """Tells how a watch ended and stays up as the settings say."""

    def __init__(
        self,
        settings: EvaluatorSettings,
        *,
        namespace: Namespace | None,
        reporter: Reporter,
        metrics: EvaluatorMetrics,
        heartbeat: Heartbeat,
        health: Health,
        stop: StopRequest,
    ) -> None:
        self._settings = settings
        self._namespace = namespace
        self._reporter = reporter
        self._metrics = metrics
        self._heartbeat = heartbeat
        self._health = health
        self._stop = stop

    def tell(self, decided: Ending, *, location: str, job: JobState | None) -> None:
        """Says in the log, the metrics, the run and the cluster how the watch ended."""
        why = _because(decided, self._settings, job)
        logger.info("%s%s", decided.value, why)
        self._metrics.set_phase("done")
        try:
            self._heartbeat.beat("done", None, ending=decided.value)
        except StoreUnavailableError as error:
            logger.warning("the heartbeat was not written: %s", error)
        self._reporter.event(
            decided.value,
            f"the evaluation of {location} is over{why}",
            is_warning=decided in (Ending.TRAINER_FAILED, Ending.TIMED_OUT),
        )
        self._reporter.annotate(phase="done", ending=decided.value)

    def stays_for_news(self, decided: Ending, has_news: Callable[[], bool]) -> bool:
        """Serves metrics until there is more to watch; False when it is time to go.

        Where the Deployment is to end this pod, it is asked to until it is done or refused; the
        signal for it comes soon after.

        Args:
            decided: how the watch ended.
            has_news: whether there is more to watch; may raise StoreUnavailableError.
        """
        if self._settings.on_end == "exit" or decided is Ending.STOPPED:
            return False
        logger.info("staying up to serve metrics until a signal comes")
        may_scale = self._settings.on_end == "scale-to-zero"
        while not self._stop():
            self._health.beat(phase=decided.value, patience_seconds=_PATIENCE_SECONDS)
            if may_scale:
                may_scale = not self._has_scaled_to_zero()
            self._stop.wait(_LOOK_SECONDS)
            with contextlib.suppress(StoreUnavailableError):
                if not self._stop() and has_news():
                    logger.info("a trainer has begun again: watching on")
                    return True
        return False

    def _has_scaled_to_zero(self) -> bool:
        """Whether that is done, or never can be."""
        try:
            if self._namespace is None or self._settings.deployment is None:
                raise ClusterRefusedError("this process knows of no cluster")
            self._namespace.scale(self._settings.deployment, 0)
        except ClusterUnavailableError as error:
            logger.warning("the Deployment can't be scaled to zero for now: %s", error)
            return False
        except ClusterError as error:
            logger.warning("staying up, as the Deployment can't be scaled to zero: %s", error)
        else:
            logger.info("Deployment %s is scaled to zero", self._settings.deployment)
        return True


def _because(decided: Ending, settings: EvaluatorSettings, job: JobState | None) -> str:
    if decided is Ending.TIMED_OUT:
        return (
            f": no new checkpoint and no sign of life of the trainer for "
            f"{settings.wait_interval:g} s"
        )
    if decided is Ending.TRAINER_FAILED:
        words = ["the trainer ended as failed; what it left is evaluated"]
        if job is not None and job.phase is JobPhase.FAILED:
            words.append(f"its Job {settings.trainer_job}: {job.reason}: {job.message}")
        return ": " + "; ".join(words)
    return ""
