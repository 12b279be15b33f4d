"""Every panel over a real Prometheus that scrapes a real run, whose trainer was killed once."""

import time

import pytest

from services.ctl.shapes import ShapesSpec, make_shapes
from tests.deploy.dashboards.asking import View, answers, events
from tests.deploy.dashboards.cluster_series import exporting
from tests.deploy.dashboards.prometheus import running_prometheus
from tests.deploy.dashboards.reading import NAMES, board, panels
from tests.deploy.dashboards.runs import EVAL_SETS, NAMESPACE, running
from tests.rig.gcs import running_gcs

_RUN = "raccoon"
_TRAINER_FLAGS = ("--checkpoint-every-n", 60, "--heartbeat-interval", 1, "--owner", "test")
_EVALUATOR_FLAGS = ("--poll-interval", 0.5)
_LOOKS_BACK_SECONDS = 65


@pytest.fixture(scope="module")
def scraped(tmp_path_factory):
    """A Prometheus and the view of its dashboards, while the run still goes on."""
    folder = tmp_path_factory.mktemp("real-run")
    shapes = make_shapes(folder, ShapesSpec(num_train=12, num_held_out=6, image_size=64))
    with (
        running_gcs() as gcs,
        running_prometheus(folder, interval_seconds=1) as prometheus,
        exporting(_RUN) as cluster,
        running(folder, gcs, prometheus, shapes) as runs,
    ):
        start = time.time()
        prometheus.scrape(cluster, {"job": "kube-state-metrics"})
        first = runs.start("trainer", _RUN, *_TRAINER_FLAGS)
        evaluator = runs.start("evaluator", _RUN, *_EVALUATOR_FLAGS)
        runs.wait_for(lambda: first.saves() >= 1, first)
        first_seen = time.time()
        runs.forget(first)
        trainer = runs.start("trainer", _RUN, *_TRAINER_FLAGS)
        runs.wait_for(lambda: trainer.saves() >= 1, trainer)
        runs.wait_for(lambda: len(evaluator.scored_sets()) == len(EVAL_SETS), evaluator)
        # The newest of it is scraped more than once, and the first attempt lies far enough back
        # for the annotations, however fast the machine is.
        time.sleep(max(3, first_seen + _LOOKS_BACK_SECONDS - time.time()))
        variables = {"namespace": NAMESPACE, "run": _RUN, "eval_set": ".+"}
        yield prometheus, View(variables, start, time.time(), scrape_seconds=1)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_no_query_of_a_panel_is_without_data(name, scraped):
    prometheus, view = scraped
    empty = [
        (panel["title"], target["expr"])
        for _, panel in panels(board(name))
        for target in panel["targets"]
        if not answers(prometheus, panel, view)[target["refId"]]
    ]
    assert empty == []


@pytest.mark.slow
def test_the_restart_is_marked_once(scraped):
    prometheus, view = scraped
    annotation, *_ = board("tandem-run")["annotations"]["list"]
    assert annotation["name"] == "Trainer started again"
    assert len(events(prometheus, annotation, view)) == 1


@pytest.mark.slow
def test_the_values_of_a_row_are_those_of_its_run(scraped):
    prometheus, view = scraped
    (table,) = [panel for _, panel in panels(board("tandem-fleet")) if panel["type"] == "table"]
    for found in answers(prometheus, table, view).values():
        assert [(s.labels["namespace"], s.labels["run"]) for s in found] == [(NAMESPACE, _RUN)]
