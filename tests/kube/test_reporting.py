"""What reaches the cluster, when, and what happens when it doesn't answer."""

import logging
import threading
import time

import pytest

from tandem.errors import ClusterError, ClusterRefusedError, ClusterUnavailableError
from tandem.kube.budgets import BURST
from tandem.kube.reporting import Reporter
from tests.kube.memory_namespace import JOB, MemoryNamespace


@pytest.fixture
def cluster():
    return MemoryNamespace()


def new_reporter(cluster, **settings):
    settings = {"phase_seconds": 0.0, "closing_seconds": lambda: 10.0} | settings
    return Reporter(cluster, JOB if cluster else None, **settings)


def eventually(condition):
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_events_and_annotations_arrive_in_order_and_the_last_ones_at_the_end(cluster):
    with new_reporter(cluster) as reporter:
        reporter.event("Started", "attempt 1 begins")
        reporter.annotate(phase="training", step=0, best_metric=None)
        reporter.event("Finished", "step 10 is committed")
        reporter.annotate(phase="finished", step=10)
    assert cluster.told == [
        ("Started", "attempt 1 begins", 1),
        ("Finished", "step 10 is committed", 1),
    ]
    assert cluster.annotations == {"tandem.dev/phase": "finished", "tandem.dev/step": "10"}


def test_the_same_event_counts_up_the_first_one(cluster):
    with new_reporter(cluster) as reporter:
        for _ in range(3):
            reporter.event("SaveFailed", "the store is away", is_warning=True)
    assert cluster.told == [("SaveFailed", "the store is away", 3)]


def test_an_event_that_the_cluster_has_forgotten_is_written_anew(cluster):
    with new_reporter(cluster) as reporter:
        reporter.event("SaveFailed", "the store is away")
        eventually(lambda: cluster.events)
        cluster.events.clear()
        reporter.event("SaveFailed", "the store is away")
    assert cluster.told == [("SaveFailed", "the store is away", 1)]


def test_a_process_in_trouble_does_not_flood_the_cluster(cluster, caplog):
    with new_reporter(cluster) as reporter:
        for number in range(BURST + 10):
            reporter.event("Trouble", str(number))
            eventually(lambda: not reporter._events)
    assert len(cluster.events) == BURST
    assert [r.message for r in caplog.records] == ["too many Events, Trouble is left out"]


def test_steps_are_told_seldom_and_a_new_phase_at_once(cluster):
    with new_reporter(cluster, annotate_seconds=3600) as reporter:
        reporter.annotate(phase="training", step=0)
        eventually(lambda: cluster.patches == 1)
        for step in range(1, 100):
            reporter.annotate(phase="training", step=step)
        time.sleep(0.05)
        assert cluster.annotations["tandem.dev/step"] == "0"
        reporter.annotate(phase="saving")
        eventually(lambda: cluster.patches == 2)
        assert cluster.annotations["tandem.dev/step"] == "99"
    assert cluster.patches == 2


def test_what_a_role_refuses_is_said_once_and_the_rest_goes_on(cluster, caplog):
    cluster.errors["create"] = ClusterRefusedError('cannot create resource "events"')
    with new_reporter(cluster) as reporter:
        for number in range(3):
            reporter.event("Started", str(number))
        reporter.annotate(phase="training")
    assert cluster.calls.count("create") == 1
    assert cluster.annotations == {"tandem.dev/phase": "training"}
    [record] = caplog.records
    assert "going on without Events in the cluster: cannot create" in record.message


def test_one_event_that_the_cluster_does_not_take_costs_no_other(cluster):
    cluster.errors["create"] = ClusterError("422: name too long")
    with new_reporter(cluster) as reporter:
        reporter.event("Odd", "x")
        eventually(lambda: not reporter._events)
        cluster.errors.clear()
        reporter.event("Finished", "step 10")
    assert cluster.told == [("Finished", "step 10", 1)]


def test_the_last_words_are_tried_again_while_there_is_time(cluster):
    cluster.errors["uid"] = ClusterUnavailableError("429")
    with new_reporter(cluster) as reporter:
        reporter.event("Finished", "step 10")
        eventually(lambda: cluster.calls)
        threading.Timer(0.3, cluster.errors.clear).start()
    assert cluster.told == [("Finished", "step 10", 1)]


def test_while_the_cluster_is_away_the_words_wait(cluster, caplog):
    caplog.set_level(logging.WARNING)
    cluster.errors["uid"] = cluster.errors["annotate"] = ClusterUnavailableError("no route")
    with new_reporter(cluster, again_seconds=0.02) as reporter:
        reporter.event("Started", "attempt 1 begins")
        reporter.annotate(phase="training")
        eventually(lambda: cluster.calls.count("uid") >= 3)
        cluster.errors.clear()
        eventually(lambda: cluster.patches)
    assert cluster.told == [("Started", "attempt 1 begins", 1)]
    assert [r.message for r in caplog.records] == ["the cluster can't be told for now: no route"]


def test_more_events_than_may_wait_push_the_oldest_out_which_is_said_once(cluster, caplog):
    caplog.set_level(logging.WARNING)
    cluster.errors["uid"] = ClusterUnavailableError("no route")
    with new_reporter(cluster, again_seconds=3600.0) as reporter:
        reporter.event("SaveFailed", "step 0")
        eventually(lambda: caplog.records)  # it is out of reach, and tried again at the end only
        for number in range(1, 25):
            reporter.event("SaveFailed", f"step {number}")
        cluster.errors.clear()
    texts = [text for _, text, _ in cluster.told]
    assert texts[-1] == "step 24"
    assert "step 0" not in texts
    said = [r.message for r in caplog.records if "more than 20 Events wait" in r.message]
    assert len(said) == 1
    assert "SaveFailed" in said[0]


def test_leaving_does_not_wait_for_a_cluster_that_hangs(cluster):
    def hang(subject):
        cluster.hangs.wait(60)
        raise ClusterUnavailableError("late")

    cluster.uid = hang
    with new_reporter(cluster, closing_seconds=lambda: 0.0) as reporter:
        reporter.event("Started", "attempt 1 begins")
    assert cluster.events == {}
    cluster.hangs.set()


def test_a_fault_of_ours_ends_the_telling_and_not_the_process(cluster, caplog):
    cluster.errors["uid"] = RuntimeError("a fault")
    with new_reporter(cluster) as reporter:
        reporter.event("Started", "attempt 1 begins")
        eventually(lambda: caplog.records)
        reporter.annotate(phase="training")
    assert "a fault" in caplog.text


def test_without_a_cluster_nothing_is_told_and_no_thread_runs():
    before = threading.active_count()
    with new_reporter(None) as reporter:
        reporter.event("Started", "attempt 1 begins")
        reporter.annotate(phase="training")
        assert threading.active_count() == before
