import pytest

from tandem.config.pipeline import load_pipeline, num_classes_of, write_pipeline
from tandem.errors import ConfigError
from tandem.protos.pipeline_pb2 import TrainEvalPipelineConfig

BASE = """
model { ssd { num_classes: 3 freeze_batchnorm: true } }
train_config {
  batch_size: 8
  num_steps: 100
  data_augmentation_options { random_horizontal_flip {} }
  data_augmentation_options { ssd_random_crop {} }
  optimizer { momentum_optimizer { momentum_optimizer_value: 0.8 } use_moving_average: false }
}
train_input_reader { tf_record_input_reader { input_path: ["a", "b"] } label_map_path: "m" }
eval_config { super_categories { key: "x" value: "1" } }
eval_input_reader { name: "one" }
eval_input_reader { name: "two" }
"""


@pytest.fixture
def load(tmp_path):
    path = tmp_path / "pipeline.config"
    path.write_text(BASE)
    return lambda *overrides: load_pipeline(str(path), overrides=overrides)


def test_a_singular_field_takes_the_overrides_value_and_its_neighbours_stay(load):
    config = load("train_config { batch_size: 2 }")
    assert (config.train_config.batch_size, config.train_config.num_steps) == (2, 100)
    assert config.model.ssd.num_classes == 3


def test_an_override_may_set_the_default(load):
    config = load("model { ssd { freeze_batchnorm: false } } train_config { num_steps: 0 }")
    assert not config.model.ssd.freeze_batchnorm
    assert config.train_config.num_steps == 0


def test_a_repeated_message_is_replaced_as_a_whole(load):
    config = load("train_config { data_augmentation_options { random_vertical_flip {} } }")
    steps = config.train_config.data_augmentation_options
    assert [step.WhichOneof("preprocessing_step") for step in steps] == ["random_vertical_flip"]
    assert [r.name for r in load('eval_input_reader { name: "three" }').eval_input_reader] == [
        "three"
    ]


def test_a_repeated_scalar_is_replaced_as_a_whole(load):
    reader = load(
        'train_input_reader { tf_record_input_reader { input_path: "c" } }'
    ).train_input_reader
    assert list(reader.tf_record_input_reader.input_path) == ["c"]
    assert reader.label_map_path == "m"


def test_a_map_is_replaced_as_a_whole(load):
    config = load('eval_config { super_categories { key: "y" value: "2" } }')
    assert dict(config.eval_config.super_categories) == {"y": "2"}


def test_another_member_of_a_oneof_replaces_the_old_one(load):
    optimizer = load("train_config { optimizer { adam_optimizer {} } }").train_config.optimizer
    assert optimizer.WhichOneof("optimizer") == "adam_optimizer"
    assert not optimizer.momentum_optimizer.HasField("momentum_optimizer_value")
    assert optimizer.HasField("use_moving_average")


def test_the_same_member_of_a_oneof_is_merged(load):
    optimizer = load(
        "train_config { optimizer { momentum_optimizer { learning_rate {} } } }"
    ).train_config.optimizer
    assert optimizer.momentum_optimizer.momentum_optimizer_value == pytest.approx(0.8)
    assert optimizer.momentum_optimizer.HasField("learning_rate")


def test_an_empty_block_switches_a_part_on(load):
    assert load("model { ssd { loss {} } }").model.ssd.HasField("loss")


def test_later_overrides_win(load):
    config = load("train_config { batch_size: 2 }", "train_config { batch_size: 4 }")
    assert config.train_config.batch_size == 4


def test_a_wrong_override_is_named_by_its_number_and_text(load):
    with pytest.raises(ConfigError) as error:
        load("train_config { batch_size: 2 }", "train_config { batchsize: 4 }")
    assert str(error.value).startswith("override 2 (train_config { batchsize: 4 }):1:16: unknown")


def test_a_file_that_is_missing_or_no_text_is_a_config_error(tmp_path):
    with pytest.raises(ConfigError, match=r"nope\.config: can't be read: No such file"):
        load_pipeline(str(tmp_path / "nope.config"))
    with pytest.raises(ConfigError, match="Is a directory"):
        load_pipeline(str(tmp_path))
    binary = tmp_path / "binary.config"
    binary.write_bytes(b"model {\n\xff\xfe")
    with pytest.raises(ConfigError, match=r"binary\.config:2: expected UTF-8 text"):
        load_pipeline(str(binary))


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path):
    path = tmp_path / "windows.config"
    path.write_bytes(b"\xef\xbb\xbftrain_config { batch_size: 3 }\r\n")
    assert load_pipeline(str(path)).train_config.batch_size == 3


def test_what_is_written_reads_back_the_same(load, tmp_path):
    path = tmp_path / "written.config"
    path.write_text(write_pipeline(load()))
    assert load_pipeline(str(path)) == load()


@pytest.mark.parametrize("kind", ["ssd", "faster_rcnn", "center_net"])
def test_the_number_of_classes_is_that_of_the_model_whatever_its_kind(kind):
    config = TrainEvalPipelineConfig()
    getattr(config.model, kind).num_classes = 7
    assert num_classes_of(config) == 7


def test_a_model_without_classes_is_refused():
    config = TrainEvalPipelineConfig()
    with pytest.raises(ConfigError, match="model: expected one of faster_rcnn, ssd, center_net"):
        num_classes_of(config)
    config.model.experimental_model.SetInParent()
    with pytest.raises(ConfigError, match="found experimental_model"):
        num_classes_of(config)
    config.model.ssd.num_classes = 0
    with pytest.raises(ConfigError, match=r"model\.ssd\.num_classes: expected 1 or more, found 0"):
        num_classes_of(config)
