"""What a trainer exports, as a scraper sees it."""

import math

import pytest
from prometheus_client import CollectorRegistry

from tandem.telemetry.trainer_metrics import TrainerMetrics

BADPUT = ("starting", "saving", "data", "lost")


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
    return TrainerMetrics(registry, began=40.0, monotonic=clock, wall_clock=clock)


def test_a_step_shows_its_losses_rate_and_time(registry, trainer, clock):
    trainer.begin(attempt=2, step=6, target_step=100)
    clock.now = 1234.5
    trainer.record_step(
        7,
        losses={"total": 1.5, "localization": 0.5},
        learning_rate=0.1,
        num_images=8,
        seconds=0.2,
        data_seconds=0.15,
    )
    trainer.record_step(
        8, losses={"total": 1.25}, learning_rate=0.1, num_images=8, seconds=0.3, data_seconds=0.05
    )
    value = registry.get_sample_value
    assert value("tandem_train_attempt") == 2
    assert value("tandem_train_step") == 8
    assert value("tandem_train_target_step") == 100
    assert value("tandem_train_loss", {"part": "total"}) == 1.25
    assert value("tandem_train_loss", {"part": "localization"}) == 0.5
    assert value("tandem_train_images_total") == 16
    assert value("tandem_train_last_step_timestamp_seconds") == 1234.5
    assert value("tandem_train_data_seconds_total") == pytest.approx(0.2)
    assert value("tandem_train_step_seconds_count") == 2
    assert value("tandem_train_step_seconds_sum") == pytest.approx(0.5)
    assert value("tandem_train_step_seconds_bucket", {"le": "0.25"}) == 1


def test_a_training_without_end_has_no_target_and_no_time_left(registry, trainer):
    trainer.begin(attempt=1, step=0, target_step=None)
    trainer.record_rate(
        2.5, eta_seconds=None, stall_budget_seconds=None, save_interval_seconds=None
    )
    assert registry.get_sample_value("tandem_train_steps_per_second") == 2.5
    for name in (
        *("tandem_train_target_step", "tandem_train_eta_seconds"),
        *("tandem_train_stall_budget_seconds", "tandem_ckpt_interval_target_seconds"),
    ):
        assert math.isnan(registry.get_sample_value(name))


def test_the_pace_sets_what_is_late(registry, trainer):
    trainer.record_rate(
        0.5, eta_seconds=9.0, stall_budget_seconds=300.0, save_interval_seconds=2000.0
    )
    assert registry.get_sample_value("tandem_train_eta_seconds") == 9
    assert registry.get_sample_value("tandem_train_stall_budget_seconds") == 300
    assert registry.get_sample_value("tandem_ckpt_interval_target_seconds") == 2000


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


def test_a_pod_that_starts_again_shows_what_the_run_folder_says_of_those_before(registry, trainer):
    trainer.restore_commit(500, committed_at=77.0)
    trainer.restore_past(endings=["killed", "asked", "killed"], lost_steps=12)
    value = registry.get_sample_value
    assert value("tandem_ckpt_last_commit_step") == 500
    assert value("tandem_ckpt_last_commit_timestamp_seconds") == 77
    assert value("tandem_preemptions_total", {"reason": "killed"}) == 2
    assert value("tandem_preemptions_total", {"reason": "asked"}) == 1
    assert value("tandem_preemptions_total", {"reason": "failed"}) == 0
    assert value("tandem_lost_steps_total") == 12
    assert value("tandem_ckpt_saves_total", {"outcome": "ok"}) == 0


def test_time_that_brings_no_new_step_is_counted_by_cause_beside_all_time(registry, trainer, clock):
    clock.now = 140.0
    trainer.count_badput("starting", 30.0)
    trainer.record_stall(2.0)
    trainer.count_badput("lost", -0.001)  # two clocks' reading
    value = registry.get_sample_value
    badput = "tandem_badput_seconds_total"
    found = {cause: value(badput, {"cause": cause}) for cause in BADPUT}
    assert found == {"starting": 30.0, "saving": 2.0, "data": 0.0, "lost": 0.0}
    assert value("tandem_wall_seconds_total") == 100.0
    clock.now += 7
    assert value("tandem_wall_seconds_total") == 107.0


def test_each_part_of_a_save_is_timed(registry, trainer):
    trainer.record_save_phase("upload", 3.0)
    count, total = "tandem_ckpt_phase_seconds_count", "tandem_ckpt_phase_seconds_sum"
    assert registry.get_sample_value(total, {"phase": "upload"}) == 3
    assert registry.get_sample_value(count, {"phase": "retire"}) == 0
