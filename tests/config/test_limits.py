import pytest

from tandem.config.limits import value_problems
from tandem.config.text import parse_text
from tandem.protos.pipeline_pb2 import TrainEvalPipelineConfig


def problems(text):
    return value_problems(parse_text(text, TrainEvalPipelineConfig, source="test"))


def test_an_empty_config_has_no_impossible_values():
    assert problems("") == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("train_config { batch_size: 0 }", "train_config.batch_size: expected 1 or more, found 0"),
        (
            "eval_config { batch_size: 0 }",
            "eval_config.batch_size: expected 1 or more, found 0",
        ),
        (
            "model { ssd { image_resizer { fixed_shape_resizer { height: -300 } } } }",
            "model.ssd.image_resizer.fixed_shape_resizer.height: expected 1 or more, found -300",
        ),
        (
            "model { ssd { post_processing { batch_non_max_suppression { iou_threshold: 6 } } } }",
            "model.ssd.post_processing.batch_non_max_suppression.iou_threshold: "
            "expected a number from 0 to 1, found 6",
        ),
        (
            "model { ssd { loss { localization_weight: nan } } }",
            "model.ssd.loss.localization_weight: expected 0 or more, found nan",
        ),
        (
            "model { ssd { feature_extractor { depth_multiplier: inf } } }",
            "model.ssd.feature_extractor.depth_multiplier: expected a number above 0, found inf",
        ),
        (
            "model { ssd { anchor_generator { ssd_anchor_generator { aspect_ratios: [1, 0] } } } }",
            "model.ssd.anchor_generator.ssd_anchor_generator.aspect_ratios[1]: "
            "expected a number above 0, found 0",
        ),
        (
            "eval_input_reader {} eval_input_reader { sample_1_of_n_examples: 0 }",
            "eval_input_reader[1].sample_1_of_n_examples: expected 1 or more, found 0",
        ),
        (
            "train_config { optimizer { momentum_optimizer { momentum_optimizer_value: 9 } } }",
            "train_config.optimizer.momentum_optimizer.momentum_optimizer_value: "
            "expected a number from 0 to 1, found 9",
        ),
        (
            "train_config { optimizer { momentum_optimizer { learning_rate { "
            "constant_learning_rate { learning_rate: -1 } } } } }",
            "train_config.optimizer.momentum_optimizer.learning_rate.constant_learning_rate."
            "learning_rate: expected 0 or more, found -1",
        ),
    ],
)
def test_an_impossible_value_is_named_with_its_path_and_what_was_expected(text, problem):
    assert problems(text) == [problem]


def test_an_unmatched_threshold_above_the_matched_one_names_both():
    (problem,) = problems(
        "model { ssd { matcher { argmax_matcher { "
        "matched_threshold: 0.4 unmatched_threshold: 0.5 } } } }"
    )
    assert "unmatched_threshold 0.5 is above matched_threshold 0.4" in problem


def test_evaluating_moving_averages_that_are_not_kept_is_a_problem():
    (problem,) = problems(
        "train_config { optimizer { use_moving_average: false } } "
        "eval_config { use_moving_averages: true }"
    )
    assert problem.startswith("eval_config.use_moving_averages is true, but")


def test_moving_averages_are_kept_by_default():
    assert problems("train_config { optimizer {} } eval_config { use_moving_averages: true }") == []


def test_all_problems_are_listed():
    assert len(problems("train_config { batch_size: 0 max_number_of_boxes: -1 }")) == 2
