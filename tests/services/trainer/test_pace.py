"""Speed and time left."""

import pytest

from services.trainer.pace import Pace


def test_nothing_is_known_before_the_second_step():
    pace = Pace()
    pace.add(60.0)
    assert pace.steps_per_second is None
    assert pace.eta_seconds(0, 100) is None
    assert (pace.median_seconds, pace.stall_budget_seconds, pace.seconds_of(10)) == (None,) * 3


@pytest.mark.parametrize(("median", "budget"), [(0.1, 300.0), (15.0, 300.0), (40.0, 800.0)])
def test_a_stall_is_twenty_steps_and_at_least_five_minutes(median, budget):
    pace = Pace()
    for seconds in (60.0, median, median):
        pace.add(seconds)
    assert pace.stall_budget_seconds == pytest.approx(budget)
    assert pace.seconds_of(1000) == pytest.approx(1000 * median)


def test_the_first_step_which_compiles_does_not_spoil_the_speed():
    pace = Pace()
    for seconds in (60.0, 0.5, 0.5, 0.5):
        pace.add(seconds)
    assert pace.steps_per_second == pytest.approx(2.0)
    assert pace.eta_seconds(4, 104) == pytest.approx(50.0)


def test_a_run_without_an_end_has_no_time_left_to_tell():
    pace = Pace()
    pace.add(1.0)
    pace.add(1.0)
    assert pace.eta_seconds(4, None) is None


def test_only_the_last_fifty_steps_count():
    pace = Pace()
    for seconds in [1.0] * 100 + [0.1] * 50:
        pace.add(seconds)
    assert pace.steps_per_second == pytest.approx(10.0)
