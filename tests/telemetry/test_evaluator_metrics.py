"""What an evaluator exports, as a scraper sees it."""

import math

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from tandem.telemetry.evaluator_metrics import EvaluatorMetrics


class Clock:
    def __init__(self, now=100.0):
        self.now = now

    def __call__(self):
        return self.now


@pytest.fixture
def registry():
    return CollectorRegistry()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def evaluator(registry, clock):
    return EvaluatorMetrics(registry, monotonic=clock, wall_clock=lambda: 1e9)


def ap(registry, name, eval_set="val"):
    return registry.get_sample_value(name, {"eval_set": eval_set, "metric": "AP"})


@pytest.mark.parametrize("nothing", [None, -1.0, math.nan])
def test_a_metric_without_ground_truth_is_absent(registry, evaluator, nothing):
    evaluator.show_scored("val", step=1, metrics={"AP": 0.5})
    evaluator.show_best("val", step=1, metrics={"AP": 0.5})
    evaluator.show_scored("val", step=2, metrics={"AP": nothing, "AP50": 0.0})
    assert ap(registry, "tandem_eval_metric") is None
    assert ap(registry, "tandem_eval_best_metric") == 0.5
    assert (
        registry.get_sample_value("tandem_eval_metric", {"eval_set": "val", "metric": "AP50"}) == 0
    )
    assert b"-1" not in generate_latest(registry)


def test_the_newest_scored_and_the_best_checkpoint_are_shown_per_set(registry, evaluator):
    evaluator.show_scored("day", step=30, metrics={"AP": 0.4}, completed_at=5.0)
    evaluator.show_best("day", step=20, metrics={"AP": 0.6})
    evaluator.show_scored("night", step=20, metrics={"AP": 0.1})
    assert ap(registry, "tandem_eval_metric", "day") == 0.4
    assert ap(registry, "tandem_eval_best_metric", "day") == 0.6
    assert ap(registry, "tandem_eval_metric", "night") == 0.1
    day = {"eval_set": "day"}
    assert registry.get_sample_value("tandem_eval_best_step", day) == 20
    assert registry.get_sample_value("tandem_eval_last_completed_step", day) == 30
    when = "tandem_eval_last_completed_timestamp_seconds"
    assert registry.get_sample_value(when, day) == 5.0
    assert registry.get_sample_value(when, {"eval_set": "night"}) == 1e9


def test_the_unnamed_set_is_called_eval(registry, evaluator):
    evaluator.show_scored("", step=1, metrics={"AP": 0.5})
    assert ap(registry, "tandem_eval_metric", "eval") == 0.5


def test_attempts_are_counted_by_outcome_and_only_real_ones_are_timed(registry, evaluator):
    evaluator.count_attempt("val", outcome="ok", seconds=12.0, num_images=200)
    evaluator.count_attempt("val", outcome="error", seconds=3.0)
    evaluator.count_attempt("val", outcome="skipped")
    value = registry.get_sample_value
    for outcome in ("ok", "error", "skipped"):
        labels = {"eval_set": "val", "outcome": outcome}
        assert value("tandem_eval_attempts_total", labels) == 1
    assert value("tandem_eval_seconds_count", {"eval_set": "val"}) == 2
    assert value("tandem_eval_images_scored_total", {"eval_set": "val"}) == 200


def test_the_newest_checkpoints_age_counts_from_when_it_was_first_seen(registry, evaluator, clock):
    age = "tandem_eval_newest_checkpoint_age_seconds"
    evaluator.record_listing(newest_step=None, backlog=0)
    assert math.isnan(registry.get_sample_value(age))
    evaluator.record_listing(newest_step=1000, backlog=1)
    clock.now += 30
    evaluator.record_listing(newest_step=1000, backlog=1)
    assert registry.get_sample_value(age) == 30
    evaluator.record_listing(newest_step=2000, backlog=2)
    assert registry.get_sample_value(age) == 0
    assert registry.get_sample_value("tandem_eval_newest_checkpoint_step") == 2000
    assert registry.get_sample_value("tandem_eval_backlog") == 2


def test_progress_and_phase_of_an_evaluation_are_shown(registry, evaluator):
    evaluator.set_phase("running")
    evaluator.record_images(40, expected=200)
    assert registry.get_sample_value("tandem_eval_phase", {"phase": "running"}) == 1
    assert registry.get_sample_value("tandem_eval_phase", {"phase": "starting"}) == 0
    assert registry.get_sample_value("tandem_eval_images_done") == 40
    assert registry.get_sample_value("tandem_eval_images_expected") == 200
    assert registry.get_sample_value("tandem_eval_heartbeat_timestamp_seconds") == 1e9


def test_the_counters_of_the_configs_sets_begin_at_0(registry, evaluator):
    evaluator.begin(["day", ""], lag_budget_seconds=600.0)
    value = registry.get_sample_value
    for name in ("day", "eval"):
        labels = {"eval_set": name, "outcome": "error"}
        assert value("tandem_eval_attempts_total", labels) == 0
        assert value("tandem_eval_bad_records_total", {"eval_set": name}) == 0
        assert value("tandem_eval_seconds_count", {"eval_set": name}) == 0
    assert value("tandem_eval_lag_budget_seconds") == 600
    evaluator.count_bad_records("", 2)
    assert value("tandem_eval_bad_records_total", {"eval_set": "eval"}) == 2


def test_the_oldest_that_waits_is_told_by_when_it_was_committed(registry, evaluator):
    oldest = "tandem_ckpt_oldest_pending_timestamp_seconds"
    assert math.isnan(registry.get_sample_value(oldest))
    evaluator.record_listing(newest_step=9, backlog=2, oldest_pending_at=55.0)
    assert registry.get_sample_value(oldest) == 55
    evaluator.record_listing(newest_step=9, backlog=1)  # whose time nobody knows
    assert math.isnan(registry.get_sample_value(oldest))
    evaluator.record_listing(newest_step=9, backlog=0)
    assert registry.get_sample_value(oldest) == 0


def test_a_stay_in_a_phase_is_timed_when_it_ends_and_not_for_each_sign_of_life(
    registry, evaluator, clock
):
    seconds = "tandem_eval_phase_seconds"
    evaluator.set_phase("running")
    clock.now += 10
    evaluator.set_phase("running")
    clock.now += 5
    evaluator.set_phase("waiting")
    clock.now += 100
    evaluator.set_phase("running")
    assert registry.get_sample_value(f"{seconds}_sum", {"phase": "running"}) == 15
    assert registry.get_sample_value(f"{seconds}_count", {"phase": "running"}) == 1
    assert registry.get_sample_value(f"{seconds}_count", {"phase": "restoring"}) == 0
    assert registry.get_sample_value(f"{seconds}_count", {"phase": "waiting"}) is None


def test_the_runs_outcome_the_lease_and_the_ledgers_state_are_shown(registry, evaluator):
    value = registry.get_sample_value
    evaluator.show_outcome(None)
    outcomes = ("running", "finished", "failed", "preempted")
    assert [value("tandem_eval_run_outcome", {"outcome": o}) for o in outcomes] == [0, 0, 0, 0]
    evaluator.show_outcome("finished")
    assert [value("tandem_eval_run_outcome", {"outcome": o}) for o in outcomes] == [0, 1, 0, 0]
    assert value("tandem_eval_lease_held") == 0
    evaluator.set_lease_held(held=True)
    assert value("tandem_eval_lease_held") == 1
    evaluator.show_unreadable_entries(3)
    assert value("tandem_eval_unreadable_entries") == 3
    evaluator.show_best_on_disk("day", on_disk=False)
    assert value("tandem_eval_best_on_disk", {"eval_set": "day"}) == 0
