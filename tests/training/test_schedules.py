"""Learning rates against the original's values, and by hand."""

import pytest
from google.protobuf import text_format

from tandem.errors import ConfigError
from tandem.protos import optimizer_pb2
from tandem.training.build import build_optimizer_schedule, build_schedule


def schedule(text):
    return build_schedule(text_format.Parse(text, optimizer_pb2.LearningRate()))


def test_every_stored_learning_rate_of_the_original_is_met(components):
    cases = [case for case in components.cases.values() if case["kind"] == "learning_rate"]
    assert len(cases) == 9
    for case in cases:
        rate_at = schedule(case["config"])
        ours = [rate_at(step) for step in case["steps"]]
        # The original computes in float32, whose cosine is off by up to 1.2e-7 of the base rate.
        assert ours == pytest.approx(case["values"], rel=1e-6, abs=1e-7 * max(case["values"])), (
            case["id"]
        )


@pytest.mark.parametrize(
    ("step", "rate"), [(0, 0.001), (125, 0.0405), (249, 0.079684), (250, 0.08), (150125, 0.04)]
)
def test_cosine_decay_rises_linearly_and_halves_halfway(step, rate):
    rate_at = schedule(
        "cosine_decay_learning_rate { learning_rate_base: 0.08 total_steps: 300000 "
        "warmup_learning_rate: 0.001 warmup_steps: 250 }"
    )
    assert rate_at(step) == pytest.approx(rate, rel=1e-6)


def test_cosine_decay_is_zero_from_its_end_on():
    rate_at = schedule(
        "cosine_decay_learning_rate { learning_rate_base: 0.08 total_steps: 100 "
        "warmup_learning_rate: 0.001 warmup_steps: 10 }"
    )
    assert [rate_at(100), rate_at(101), rate_at(10**9)] == [0.0, 0.0, 0.0]


def test_a_schedule_whose_numbers_contradict_each_other_is_not_built():
    # Case C19; the messages are tested beside tandem.config.schedules.
    optimizer = text_format.Parse(
        "momentum_optimizer { learning_rate { cosine_decay_learning_rate { total_steps: 5000 } } }",
        optimizer_pb2.Optimizer(),
    )
    with pytest.raises(ConfigError, match="warmup_steps 10000"):
        build_optimizer_schedule(optimizer)


def test_no_schedule_is_an_error_that_lists_them():
    with pytest.raises(ConfigError, match="cosine_decay_learning_rate"):
        schedule("")
