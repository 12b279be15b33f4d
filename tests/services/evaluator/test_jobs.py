import pytest

from services.evaluator.jobs import JobWatch
from tandem.errors import ClusterNotFoundError, ClusterRefusedError, ClusterUnavailableError
from tandem.kube.jobs import JobPhase, JobState

RUNNING, WAITING = JobState(JobPhase.RUNNING), JobState(JobPhase.WAITING)
AWAY = ClusterUnavailableError("503")


class Cluster:
    """Answers as it is told, and counts."""

    def __init__(self):
        self.answer = RUNNING
        self.looks = 0

    def job_state(self, name):
        self.looks += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def now():
    return [0.0]


@pytest.fixture
def cluster():
    return Cluster()


@pytest.fixture
def watch(cluster, now):
    return JobWatch(cluster, "trainer", monotonic=lambda: now[0])


def test_the_cluster_is_asked_every_ten_seconds(watch, cluster, now):
    for now[0] in range(31):
        assert watch.look() == RUNNING
    assert cluster.looks == 4


def test_a_cluster_that_is_away_leaves_the_job_as_it_was_for_a_quarter_of_an_hour(
    watch, cluster, now
):
    assert watch.look() == RUNNING
    cluster.answer = AWAY
    now[0] = 890.0
    assert watch.look() == RUNNING
    now[0] = 900.0
    assert watch.look() is None
    cluster.answer = WAITING
    now[0] = 910.0
    assert watch.look() == WAITING


def test_a_cluster_that_has_not_answered_yet_may_have_a_job_that_waits(watch, cluster):
    cluster.answer = AWAY
    assert watch.look() == WAITING


def test_a_job_is_gone_when_it_is_not_found_three_times(watch, cluster, now):
    watch.look()
    cluster.answer = ClusterNotFoundError("no trainer")
    found = []
    for now[0] in (10.0, 20.0, 30.0):
        found.append(watch.look())
    assert found == [RUNNING, RUNNING, None]


def test_a_failed_job_that_a_job_set_makes_anew_has_not_failed(watch, cluster, now):
    failed = JobState(JobPhase.FAILED, "BackoffLimitExceeded")
    found = []
    for now[0], answer in ((0.0, RUNNING), (10.0, failed), (20.0, WAITING), (30.0, failed)):
        cluster.answer = answer
        found.append(watch.look())
    assert found == [RUNNING, RUNNING, WAITING, WAITING]
    for now[0] in (40.0, 50.0):
        found = watch.look()
    assert found == failed


def test_without_the_right_nothing_is_known(watch, cluster, caplog):
    cluster.answer = ClusterRefusedError("forbidden")
    assert watch.look() is None
    assert "forbidden" in caplog.text


@pytest.mark.parametrize(("namespace", "name"), [(None, "trainer"), (Cluster(), None)])
def test_without_a_cluster_or_a_name_nobody_is_asked(namespace, name):
    watch = JobWatch(namespace, name)
    assert watch.look() is None
    assert watch.state is None
