import pytest

from tandem.config.schedules import schedule_problems
from tandem.config.text import parse_text
from tandem.protos.optimizer_pb2 import Optimizer

PATH = "train_config.optimizer.momentum_optimizer.learning_rate"


def problems(schedule):
    text = f"momentum_optimizer {{ learning_rate {{ {schedule} }} }}"
    return schedule_problems(parse_text(text, Optimizer, source="test"))


def test_a_base_rate_below_the_default_warm_up_rate_names_both(  # case C19
):
    assert problems("cosine_decay_learning_rate { learning_rate_base: 0.0001 }") == [
        f"{PATH}.cosine_decay_learning_rate: warmup_learning_rate 0.0002 (the default, as the "
        "config doesn't say) is above learning_rate_base 0.0001; warm-up has to rise to the base "
        "rate, so set warmup_learning_rate to at most that"
    ]


def test_fewer_steps_than_the_default_warm_up_steps_names_both():  # case C19
    assert problems("cosine_decay_learning_rate { total_steps: 5000 }") == [
        f"{PATH}.cosine_decay_learning_rate: warmup_steps 10000 (the default, as the config "
        "doesn't say) is more than total_steps 5000; set warmup_steps to at most that "
        "(0: no warm-up)"
    ]


def test_given_values_are_not_called_defaults():
    (problem,) = problems(
        "cosine_decay_learning_rate { total_steps: 50 warmup_steps: 60 "
        "learning_rate_base: 0.1 warmup_learning_rate: 0.1 }"
    )
    assert "default" not in problem
    assert "warmup_steps 60 is more than total_steps 50" in problem


@pytest.mark.parametrize(
    "schedule",
    [
        "cosine_decay_learning_rate { learning_rate_base: .08 total_steps: 50000 "
        "warmup_learning_rate: .026666 warmup_steps: 1000 }",
        "cosine_decay_learning_rate { learning_rate_base: .1 total_steps: 9 warmup_steps: 0 }",
        "constant_learning_rate { learning_rate: 0 }",
        "manual_step_learning_rate { schedule { step: 5 } schedule { step: 6 } }",
        "exponential_decay_learning_rate {}",
        "",
    ],
)
def test_schedules_that_can_be_followed_pass(schedule):
    assert problems(schedule) == []


@pytest.mark.parametrize(
    ("schedule", "problem"),
    [
        (
            "constant_learning_rate { learning_rate: -1 }",
            "constant_learning_rate.learning_rate: expected 0 or more, found -1",
        ),
        (
            "constant_learning_rate { learning_rate: nan }",
            "constant_learning_rate.learning_rate: expected 0 or more, found nan",
        ),
        (
            "exponential_decay_learning_rate { decay_steps: 0 }",
            "exponential_decay_learning_rate.decay_steps: expected 1 or more, found 0",
        ),
        (
            "manual_step_learning_rate { schedule { step: 5 } schedule { step: 5 } }",
            "manual_step_learning_rate.schedule[1].step: expected more than 5, found 5",
        ),
        (
            "manual_step_learning_rate { schedule { step: 5 learning_rate: -2 } }",
            "manual_step_learning_rate.schedule[0].learning_rate: expected 0 or more, found -2",
        ),
    ],
)
def test_schedules_that_cannot_be_followed_are_named(schedule, problem):
    assert problems(schedule) == [f"{PATH}.{problem}"]


def test_an_optimizer_without_a_schedule_is_not_this_modules_business():
    assert schedule_problems(Optimizer()) == []
