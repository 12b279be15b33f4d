import pytest
from prometheus_client import CollectorRegistry

from services.trainer.accounting import Accounting, endings_before
from services.trainer.loop import StepFacts
from tandem.checkpoints.attempts import Outcome, end_attempt
from tandem.checkpoints.lines import read_line
from tandem.telemetry.trainer_metrics import TrainerMetrics
from tests.checkpoints.actors import FakeClock, claim
from tests.checkpoints.memory_store import MemoryStore


def facts_of(step, *, seconds, data_seconds):
    return StepFacts(
        step=step,
        losses={},
        learning_rate=0.1,
        gradient_norm=1.0,
        num_images=8,
        seconds=seconds,
        data_seconds=data_seconds,
    )


def test_each_second_that_brings_no_new_step_has_one_cause():
    registry = CollectorRegistry()
    accounting = Accounting(
        TrainerMetrics(registry), began=10.0, redone_until=12, monotonic=lambda: 70.0
    )
    accounting.after_step(facts_of(11, seconds=40.0, data_seconds=5.0))
    accounting.after_step(facts_of(12, seconds=2.0, data_seconds=0.5))
    accounting.after_step(facts_of(13, seconds=2.0, data_seconds=0.25))
    found = {
        cause: registry.get_sample_value("tandem_badput_seconds_total", {"cause": cause})
        for cause in ("starting", "data", "lost", "saving")
    }
    assert found == pytest.approx({"starting": 60.0, "data": 0.75, "lost": 1.5, "saving": 0.0})


def test_attempts_before_are_sorted_by_how_they_ended_and_finished_ones_left_out():
    store, clock = MemoryStore(), FakeClock()
    for outcome in (Outcome.PREEMPTED, None, Outcome.FAILED, Outcome.FINISHED, None):
        attempt = claim(store, clock)
        if outcome is not None:
            end_attempt(store, attempt, outcome=outcome, surroundings=clock.surroundings)
    line = read_line(store)
    assert endings_before(line, attempt.number) == ("asked", "killed", "failed")
    assert endings_before(line, 1) == ()
