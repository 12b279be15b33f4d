import math

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from tandem.telemetry.metrics import EvaluatorMetrics, TrainerMetrics


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
def trainer(registry, clock):
    return TrainerMetrics(registry, wall_clock=clock)


@pytest.fixture
def evaluator(registry, clock):
    return EvaluatorMetrics(registry, monotonic=clock, wall_clock=lambda: 1e9)


def test_a_step_shows_its_losses_rate_and_time(registry, trainer, clock):
    trainer.begin(attempt=2, step=6, target_step=100)
    clock.now = 1234.5
    trainer.record_step(
        7, losses={"total": 1.5, "localization": 0.5}, learning_rate=0.1, num_images=8, seconds=0.2
    )
    trainer.record_step(8, losses={"total": 1.25}, learning_rate=0.1, num_images=8, seconds=0.3)
    value = registry.get_sample_value
    assert value("tandem_train_attempt") == 2
    assert value("tandem_train_step") == 8
    assert value("tandem_train_target_step") == 100
    assert value("tandem_train_loss", {"part": "total"}) == 1.25
    assert value("tandem_train_loss", {"part": "localization"}) == 0.5
    assert value("tandem_train_images_total") == 16
    assert value("tandem_train_last_step_timestamp_seconds") == 1234.5
    assert value("tandem_train_step_seconds_count") == 2
    assert value("tandem_train_step_seconds_sum") == pytest.approx(0.5)
    assert value("tandem_train_step_seconds_bucket", {"le": "0.25"}) == 1


def test_a_training_without_end_has_no_target_and_no_time_left(registry, trainer):
    trainer.begin(attempt=1, step=0, target_step=None)
    trainer.record_rate(2.5, eta_seconds=None)
    assert registry.get_sample_value("tandem_train_steps_per_second") == 2.5
    assert math.isnan(registry.get_sample_value("tandem_train_target_step"))
    assert math.isnan(registry.get_sample_value("tandem_train_eta_seconds"))


def test_exactly_one_phase_and_its_state_are_1(registry, trainer):
    trainer.set_phase("saving")
    samples = [s for metric in registry.collect() for s in metric.samples if s.value == 1]
    assert {tuple(s.labels.values()) for s in samples if s.name == "tandem_train_phase"} == {
        ("saving",)
    }
    assert {tuple(s.labels.values()) for s in samples if s.name == "tandem_run_state"} == {
        ("running",)
    }


def test_a_failed_save_leaves_the_newest_checkpoint_as_it_was(registry, trainer, clock):
    trainer.record_save(1000, outcome="ok", seconds=2.0)
    clock.now = 999.0
    trainer.record_save(2000, outcome="error", seconds=1.0)
    value = registry.get_sample_value
    assert value("tandem_ckpt_last_commit_step") == 1000
    assert value("tandem_ckpt_last_commit_timestamp_seconds") == 100.0
    assert value("tandem_ckpt_saves_total", {"outcome": "ok"}) == 1
    assert value("tandem_ckpt_saves_total", {"outcome": "error"}) == 1
    assert value("tandem_ckpt_save_seconds_count") == 2


def test_outcomes_are_there_from_the_start_so_that_the_first_error_is_an_increase(
    registry, trainer
):
    assert registry.get_sample_value("tandem_ckpt_saves_total", {"outcome": "error"}) == 0


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


def test_both_can_live_in_one_registry_and_all_names_begin_with_tandem(registry):
    TrainerMetrics(registry)
    EvaluatorMetrics(registry)
    names = [metric.name for metric in registry.collect()]
    assert len(names) == len(set(names))
    assert all(name.startswith("tandem_") for name in names)
    assert all(metric.documentation.endswith(".") for metric in registry.collect())


def test_only_counters_end_in_total(registry):
    TrainerMetrics(registry)
    EvaluatorMetrics(registry)
    assert not [m.name for m in registry.collect() if m.name.endswith("_total")]


def test_every_metric_that_the_first_alerts_read_from_here_has_the_name_they_use(shared, registry):
    TrainerMetrics(registry)
    EvaluatorMetrics(registry)
    rules = (shared / "alerts" / "rules.yaml").read_text()
    text = generate_latest(registry).decode()
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
        assert f"# TYPE {name} " in text
