"""Staying up after the end of a watch."""

import pytest
from prometheus_client import CollectorRegistry

from services.evaluator.ended import Aftermath
from services.evaluator.settings import EvaluatorSettings
from services.evaluator.watch import Ending
from services.signals import StopRequest
from tandem.checkpoints.heartbeats import Heartbeat
from tandem.errors import ClusterRefusedError, ClusterUnavailableError, StoreUnavailableError
from tandem.kube.reporting import silent
from tandem.telemetry.evaluator_metrics import EvaluatorMetrics
from tandem.telemetry.health import Health
from tests.checkpoints.memory_store import MemoryStore


class Cluster:
    """Takes a scaling, or answers as it is told before."""

    def __init__(self, *errors):
        self.errors = list(errors)
        self.scaled = []

    def scale(self, deployment, replicas):
        self.scaled.append((deployment, replicas))
        if self.errors:
            raise self.errors.pop(0)


class CountingStop(StopRequest):
    """Asks to stop at the end of so many waits."""

    def __init__(self, waits):
        super().__init__()
        self.waits = waits

    def wait(self, seconds):
        self.waits -= 1
        if self.waits <= 0:
            self.set()


def aftermath(on_end, *, cluster=None, waits=3):
    settings = EvaluatorSettings(
        run="r", config="c", on_end=on_end, namespace="research", deployment="fox-evaluator"
    )
    return Aftermath(
        settings,
        namespace=cluster,
        reporter=silent(),
        metrics=EvaluatorMetrics(CollectorRegistry()),
        heartbeat=Heartbeat(MemoryStore(), "evaluator-main"),
        health=Health(patience_seconds=60),
        stop=CountingStop(waits),
    )


def no_news():
    return False


@pytest.mark.parametrize(
    ("on_end", "decided"), [("exit", Ending.COMPLETED), ("stay", Ending.STOPPED)]
)
def test_it_is_time_to_go_where_nobody_starts_it_again_or_asked_for_it(on_end, decided):
    after = aftermath(on_end)
    assert not after.stays_for_news(decided, no_news)
    assert after._stop.waits == 3


def test_it_stays_until_a_signal_comes():
    after = aftermath("stay", waits=5)
    assert not after.stays_for_news(Ending.COMPLETED, no_news)
    assert after._stop.waits == 0


def test_a_new_attempt_is_watched_and_a_store_that_is_away_is_no_news():
    answers = iter([StoreUnavailableError("503"), False, True])

    def has_news():
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert aftermath("stay", waits=9).stays_for_news(Ending.TRAINER_FAILED, has_news)


def test_the_deployment_is_scaled_to_zero_once_and_tried_again_while_the_cluster_is_away():
    cluster = Cluster(ClusterUnavailableError("409"), ClusterUnavailableError("503"))
    assert not aftermath("scale-to-zero", cluster=cluster, waits=9).stays_for_news(
        Ending.COMPLETED, no_news
    )
    assert cluster.scaled == [("fox-evaluator", 0)] * 3


def test_a_refused_scaling_is_said_and_it_stays_up(caplog):
    cluster = Cluster(ClusterRefusedError("deployments/scale is forbidden"))
    after = aftermath("scale-to-zero", cluster=cluster, waits=4)
    assert not after.stays_for_news(Ending.COMPLETED, no_news)
    assert cluster.scaled == [("fox-evaluator", 0)]
    assert "staying up, as the Deployment can't be scaled to zero" in caplog.text
