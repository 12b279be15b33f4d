"""The catalogue against what the processes really export, and against the page made from it."""

import typing
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from tandem.checkpoints import measuring
from tandem.telemetry import labels
from tandem.telemetry.catalogue import ALL, BOTH, EVALUATOR, STORE, TRAINER
from tandem.telemetry.definitions import Made
from tandem.telemetry.evaluator_metrics import EvaluatorMetrics
from tandem.telemetry.process_metrics import ProcessMetrics, StoreMetrics
from tandem.telemetry.reference import render
from tandem.telemetry.trainer_metrics import TrainerMetrics

PAGE = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"
UNITS = {
    "_timestamp_seconds": "seconds since 1970",
    "_seconds": "seconds",
    "_seconds_total": "seconds",
    "_step": "steps",
}


def exported(*classes):
    """Name, kind and help of all metrics that these make, as Prometheus reads them."""
    registry = CollectorRegistry()
    for metrics in classes:
        metrics(registry)
    found = {}
    for metric in registry.collect():
        total = "_total" if metric.type == "counter" else ""
        found[metric.name + total] = (metric.type, metric.documentation)
    return found


@pytest.mark.parametrize(
    ("classes", "definitions"),
    [
        ([TrainerMetrics], TRAINER),
        ([EvaluatorMetrics], EVALUATOR),
        ([ProcessMetrics], BOTH),
        ([StoreMetrics], STORE),
        ([TrainerMetrics, EvaluatorMetrics, ProcessMetrics, StoreMetrics], ALL),
    ],
)
def test_what_is_exported_is_what_the_catalogue_says(classes, definitions):
    assert exported(*classes) == {d.name: (d.kind, d.help) for d in definitions}


def test_no_name_is_there_twice_and_counters_alone_end_in_total():
    names = [definition.name for definition in ALL]
    assert len(names) == len(set(names))
    assert all(name.startswith("tandem_") for name in names)
    for definition in ALL:
        assert definition.name.endswith("_total") == (definition.kind == "counter")


def test_a_name_tells_the_unit():
    for definition in ALL:
        ending = next((end for end in UNITS if definition.name.endswith(end)), None)
        if ending is not None:
            assert definition.unit == UNITS[ending], definition.name
        if definition.kind == "histogram":
            assert definition.name.endswith("_seconds")


def test_every_metric_says_what_it_is_and_what_it_is_for():
    for definition in ALL:
        assert definition.help.endswith(".")
        assert definition.use.endswith((".", "?"))
        assert len(definition.help) <= 180


def test_every_label_is_bounded_or_says_by_what():
    series = 0
    for definition in ALL:
        for label in definition.labels:
            assert label.values or label.what, definition.name
            assert "" not in label.values
        product = 1
        for label in definition.labels:
            product *= len(label.values) or 1
        series += product * (len(definition.buckets) + 3 if definition.kind == "histogram" else 1)
    assert series < 500  # of one process of each kind and one eval set


def test_the_page_is_made_from_the_catalogue():
    assert PAGE.read_text() == render(), "make it anew: scripts/metrics"


def test_a_gauge_without_labels_is_nan_until_it_is_known_and_one_with_labels_is_absent():
    registry = CollectorRegistry()
    TrainerMetrics(registry)
    text = generate_latest(registry).decode()
    assert "tandem_train_step NaN" in text
    assert "tandem_train_loss{" not in text


def test_metrics_are_made_as_they_are_defined():
    made = Made(CollectorRegistry(), TRAINER)
    with pytest.raises(AssertionError, match="is a gauge"):
        made.counter("tandem_train_step")
    with pytest.raises(KeyError):
        made.gauge("tandem_eval_backlog")


def test_the_operations_and_outcomes_of_the_store_are_those_that_it_tells_of():
    """Side by side, neither of the two packages can import the other."""
    assert typing.get_args(labels.StoreOperation) == typing.get_args(measuring.Operation)
    assert typing.get_args(labels.StoreOutcome) == typing.get_args(measuring.RequestOutcome)


def test_every_metric_that_the_first_alerts_read_from_here_has_the_name_they_use(shared):
    rules = (shared / "alerts" / "rules.yaml").read_text()
    names = {definition.name for definition in ALL}
    for name in (
        "tandem_train_step",
        "tandem_run_state",
        "tandem_ckpt_last_commit_step",
        "tandem_ckpt_last_commit_timestamp_seconds",
        "tandem_eval_phase",
        "tandem_eval_images_done",
        "tandem_eval_heartbeat_timestamp_seconds",
        "tandem_eval_attempts_total",
        "tandem_eval_last_completed_step",
        "tandem_eval_metric",
        "tandem_eval_best_metric",
    ):
        assert name in rules
        assert name in names
