import pytest

from tandem.config.digests import config_diff, config_digest
from tandem.config.text import parse_text
from tandem.protos.pipeline_pb2 import TrainEvalPipelineConfig


def config(text):
    return parse_text(text, TrainEvalPipelineConfig, source="test")


def test_layout_comments_and_order_leave_the_digest_as_it_is():
    one = config("train_config { batch_size: 8 num_steps: 5 }")
    other = config("# run 7\ntrain_config: <\n num_steps: 5,\n batch_size: 0x8 >")
    assert config_digest(one) == config_digest(other)
    assert config_diff(one, other) == []


def test_the_order_of_a_map_leaves_the_digest_as_it_is():
    entries = [f"super_categories {{ key: '{k}' value: 'v' }}" for k in "abcdefgh"]
    one = config(f"eval_config {{ {' '.join(entries)} }}")
    other = config(f"eval_config {{ {' '.join(reversed(entries))} }}")
    assert config_digest(one) == config_digest(other)


def test_the_digest_is_the_same_on_every_machine():
    # SHA-256 of the four bytes of `train_config { batch_size: 8 }` on the wire: 12 02 08 08.
    assert config_digest(config("train_config { batch_size: 8 }")) == (
        "04627b01b7e09f47ba34031dc8f0b8b89fb340a189ead1441d4c07b98a766635"
    )


def test_a_set_default_is_not_an_unset_one():
    assert config_digest(config("train_config { batch_size: 32 }")) != config_digest(
        config("train_config {}")
    )


@pytest.mark.parametrize(
    ("old", "new", "diff"),
    [
        (
            "train_config { batch_size: 8 }",
            "train_config { batch_size: 4 }",
            ["train_config.batch_size: 8 -> 4"],
        ),
        (
            "train_config {}",
            "train_config { fine_tune_checkpoint: 'a' }",
            ["train_config: {} -> unset", 'train_config.fine_tune_checkpoint: unset -> "a"'],
        ),
        (
            "train_config { bias_grad_multiplier: 0.1 }",
            "train_config { bias_grad_multiplier: 4e-05 }",
            ["train_config.bias_grad_multiplier: 0.1 -> 4e-05"],
        ),
        (
            "eval_config { metrics_set: 'a' }",
            "eval_config { metrics_set: ['a', 'b'] }",
            ['eval_config.metrics_set: ["a"] -> ["a", "b"]'],
        ),
        (
            "eval_input_reader { name: 'a' }",
            "eval_input_reader { name: 'a' } eval_input_reader { name: 'b' shuffle: false }",
            [
                'eval_input_reader[1].name: unset -> "b"',
                "eval_input_reader[1].shuffle: unset -> false",
            ],
        ),
        (
            "model { ssd { post_processing { score_converter: SIGMOID } } }",
            "model { ssd { post_processing { score_converter: SOFTMAX } } }",
            ["model.ssd.post_processing.score_converter: SIGMOID -> SOFTMAX"],
        ),
        (
            "eval_config { super_categories { key: 'x' value: '1' } }",
            "eval_config { super_categories { key: 'x' value: '2' } }",
            ['eval_config.super_categories[\'x\']: "1" -> "2"'],
        ),
        (
            "train_config { optimizer { adam_optimizer {} } }",
            "train_config { optimizer { momentum_optimizer {} } }",
            [
                "train_config.optimizer.adam_optimizer: {} -> unset",
                "train_config.optimizer.momentum_optimizer: unset -> {}",
            ],
        ),
    ],
)
def test_the_diff_has_one_line_for_each_changed_value(old, new, diff):
    assert config_diff(config(old), config(new)) == diff
