import re

import pytest
from google.protobuf import text_format
from hypothesis import given
from hypothesis import strategies as st

from tandem.config.text import parse_text
from tandem.errors import ConfigError, LabelMapError
from tandem.protos.pipeline_pb2 import TrainEvalPipelineConfig

ACTIVATION = "model.ssd.box_predictor.convolutional_box_predictor.conv_hyperparams.activation"


def nested(path, value):
    *messages, field = path.split(".")
    return " { ".join(messages) + f" {{ {field}: {value}" + " }" * len(messages)


def message_of(text):
    with pytest.raises(ConfigError) as error:
        parse_text(text, TrainEvalPipelineConfig, source="f.config")
    return str(error.value)


def test_a_text_proto_is_parsed():
    config = parse_text("train_config { batch_size: 8 }", TrainEvalPipelineConfig, source="f")
    assert config.train_config.batch_size == 8


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "trian_config {}",
            "f.config:1:1: unknown field 'trian_config' at the top level "
            "(TrainEvalPipelineConfig); did you mean 'train_config'?",
        ),
        (
            "model {\n  ssd {\n    loss { classification_weigth: 1 }\n  }\n}",
            "f.config:3:12: unknown field 'classification_weigth' in model.ssd.loss (Loss); "
            "did you mean 'classification_weight'",
        ),
        (
            'eval_input_reader { name: "a" }\neval_input_reader { nam: "b" }',
            "f.config:2:21: unknown field 'nam' in eval_input_reader[1] (InputReader); "
            "did you mean 'name'?",
        ),
        (
            'eval_input_reader [ { name: "x" }, { nmae: "y" } ]',
            "f.config:1:38: unknown field 'nmae' in eval_input_reader[1] (InputReader); "
            "did you mean 'name'?",
        ),
        (
            "train_config { qqq: 1 optimizer {} }",
            "; its fields are add_regularization_loss, batch_queue_capacity, batch_size, ",
        ),
        ("foo { bar { num_classes: 3 } }", "f.config:1:1: unknown field 'foo' at the top level"),
    ],
)
def test_an_unknown_field_is_answered_with_its_place_and_the_nearest_names(text, expected):
    assert expected in message_of(text)


def test_a_wrong_enum_value_is_answered_with_the_valid_ones():
    assert message_of(nested(ACTIVATION, "RELU6")).endswith(
        f": {ACTIVATION}: expected one of NONE, RELU, RELU_6, SWISH, found RELU6"
    )


@pytest.mark.parametrize(
    ("text", "place", "expected"),
    [
        (
            "train_config {\n  batch_size: -1 }",
            "2:15",
            "a whole number from 0 to 4294967295, found -1",
        ),
        (
            "train_config { batch_size: 1.5 }",
            "1:28",
            "a whole number from 0 to 4294967295, found 1.5",
        ),
        ("train_config { batch_size: 5000000000 }", "1:28", "found 5000000000"),
        ("train_config { batch_size {} }", "1:27", "a whole number from 0 to 4294967295, found {"),
        ("eval_config { use_moving_averages: yes }", "1:36", "true or false, found yes"),
        ("model { ssd { num_classes: one } }", "1:28", "a whole number from -2147483648"),
        ("train_config { bias_grad_multiplier: much }", "1:38", "a number, found much"),
        ('eval_config { metrics_set: ["a", b] }', "1:34", "text in quotes, found b"),
        ("train_config { fine_tune_checkpoint: PATH }", "1:38", "text in quotes, found PATH"),
        ("train_config: 5", "1:15", "a block in { }, found 5"),
        (
            'eval_config { super_categories { key: "a" value: 5 } }',
            "1:50",
            "text in quotes, found 5",
        ),
    ],
)
def test_a_value_of_the_wrong_kind_is_answered_with_what_was_expected(text, place, expected):
    message = message_of(text)
    assert message.startswith(f"f.config:{place}: ")
    assert expected in message


def test_a_field_given_twice_is_an_error_that_names_both_places():
    assert message_of("train_config {\n  batch_size: 1\n  batch_size: 2\n}") == (
        "f.config:3:15: 'batch_size' stands twice in train_config (TrainConfig), "
        "first on line 2; it can have one value only"
    )
    assert "'model' stands twice at the top level" in message_of("model {}\nmodel {}")


def test_two_members_of_a_oneof_are_an_error_that_names_both():
    assert message_of("model {\n  ssd {}\n  faster_rcnn {}\n}") == (
        "f.config:3:3: 'faster_rcnn' stands beside 'ssd' (line 2) in model (DetectionModel); "
        "only one of them can be given"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("model {\n ssd {\n  num_classes: 1", "before 'model.ssd' (begun on line 2) is closed"),
        ("model { ssd {} } }", "1:18: expected a field's name at the top level"),
        ("{", "1:1: expected a field's name at the top level"),
        (
            "model { ssd { num_classes: 1 > }",
            "expected a field's name in model.ssd (Ssd), found '>'",
        ),
        ("train_config { fine_tune_checkpoint: 'a }", "the string 'a } has no closing quote"),
        ('model { ssd { num_classes "1" } }', "model.ssd.num_classes"),
        ("train_config = {}", "train_config: expected a block in { }, found ="),
        ("train_config { optimizer }", "train_config.optimizer"),
        ("# comment\n\x00", "2:1: expected a field's name"),
    ],
)
def test_broken_syntax_is_answered_with_its_place(text, expected):
    assert expected in message_of(text)


def test_an_extension_is_refused_by_name():
    message = message_of("train_config {}\n[other.protos.extra] { a: 1 }")
    assert message.startswith("f.config:2:")
    assert "[other.protos.extra] is an extension at the top level" in message


def test_the_parser_takes_what_people_write():
    text = """
        train_config: { batch_size: 4, num_steps: 0x10; }   # comment
        eval_config < metrics_set: ['a' "b", "c"] > ,
    """
    config = parse_text(text, TrainEvalPipelineConfig, source="f")
    assert (config.train_config.batch_size, config.train_config.num_steps) == (4, 16)
    assert list(config.eval_config.metrics_set) == ["ab", "c"]


def test_the_error_is_of_the_class_asked_for():
    with pytest.raises(LabelMapError):
        parse_text("x", TrainEvalPipelineConfig, source="f", error_class=LabelMapError)


WORDS = """model ssd train_config num_classes eval_input_reader name true NONE 1 -2.5 x.y
{ } [ ] < > : , ; # "a" 'b"""


@given(st.one_of(st.text(), st.lists(st.sampled_from(WORDS.split(" ")), max_size=30).map(" ".join)))
def test_any_text_is_parsed_or_refused_with_a_place(text):
    problem = None
    try:
        parse_text(text, TrainEvalPipelineConfig, source="f")
    except ConfigError as error:
        problem = error
    if problem:
        assert isinstance(problem.__cause__, text_format.ParseError)
        assert re.match(r"f:[1-9]\d*:[1-9]\d*: .", str(problem))
