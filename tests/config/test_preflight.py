import pytest

from tandem.config.preflight import check_pipeline
from tandem.config.text import parse_text
from tandem.errors import ConfigError, DataError, FineTuneError, LabelMapError
from tandem.protos.pipeline_pb2 import TrainEvalPipelineConfig

TEXT = """
model { ssd { num_classes: 2 } }
train_input_reader {
  tf_record_input_reader { input_path: "train-*.record" }
  label_map_path: "map.pbtxt"
}
eval_input_reader {
  tf_record_input_reader { input_path: "val.record" }
  label_map_path: "map.pbtxt"
}
"""
MAP = 'item { id: 1 name: "a" } item { id: 2 name: "b" }'
NEVER = "never-*.record"


@pytest.fixture
def config(tmp_path, monkeypatch):
    """A config whose files are in the working folder; tests break one thing of it."""
    monkeypatch.chdir(tmp_path)
    for name in ("train-0.record", "train-1.record", "val.record"):
        (tmp_path / name).write_bytes(b"record")
    (tmp_path / "map.pbtxt").write_text(MAP)
    return parse_text(TEXT, TrainEvalPipelineConfig, source="test")


def test_a_trainer_gets_its_files_and_label_map(config):
    found = check_pipeline(config, for_training=True)
    assert found.train.files == ("train-0.record", "train-1.record")
    assert found.train.label_map.ids_by_name == {"a": 1, "b": 2}
    assert (found.num_classes, found.eval_sets, found.fine_tune) == (2, (), None)


def test_an_evaluator_gets_every_eval_set(config):
    config.eval_input_reader[0].name = "day"
    night = config.eval_input_reader.add()
    night.CopyFrom(config.eval_input_reader[0])
    night.name = "night"
    found = check_pipeline(config, for_training=False)
    assert [(s.name, s.files) for s in found.eval_sets] == [
        ("day", ("val.record",)),
        ("night", ("val.record",)),
    ]
    assert found.train is None


def test_each_process_checks_its_own_inputs_only(config):
    config.train_config.fine_tune_checkpoint = "nope"
    config.train_input_reader.label_map_path = "nope"
    check_pipeline(config, for_training=False)


def test_the_fine_tune_checkpoint_is_found_in_advance(config, tmp_path):
    (tmp_path / "ckpt-1.index").write_bytes(bytes.fromhex("57fb808b247547db"))
    (tmp_path / "ckpt-1.data-00000-of-00001").touch()
    config.train_config.fine_tune_checkpoint = "ckpt-1.index"
    assert check_pipeline(config, for_training=True).fine_tune.prefix == "ckpt-1"


def test_a_missing_fine_tune_checkpoint_is_an_error(config):
    config.train_config.fine_tune_checkpoint = "./nope/ckpt-0"
    with pytest.raises(FineTuneError, match=r"'\./nope/ckpt-0' doesn't exist"):
        check_pipeline(config, for_training=True)


def test_missing_records_are_an_error(config):
    config.train_input_reader.tf_record_input_reader.input_path[0] = NEVER
    field = r"train_input_reader\.tf_record_input_reader\.input_path\[0\]"
    with pytest.raises(DataError, match=rf"^{field}: no file matches 'never-\*\.record'"):
        check_pipeline(config, for_training=True)


def test_a_reader_without_records_is_an_error(config):
    config.eval_input_reader[0].ClearField("tf_record_input_reader")
    config.eval_input_reader[0].external_input_reader.SetInParent()
    with pytest.raises(ConfigError, match=r"input_path: expected at least one record file"):
        check_pipeline(config, for_training=False)


def test_a_record_file_named_twice_is_an_error(config):
    config.train_input_reader.tf_record_input_reader.input_path.append("train-1.record")
    with pytest.raises(ConfigError, match=r"input_path\[1\]: 'train-1\.record' is already read by"):
        check_pipeline(config, for_training=True)


def test_a_missing_label_map_is_an_error_that_names_the_field(config):
    config.eval_input_reader[0].label_map_path = "nope.pbtxt"
    with pytest.raises(LabelMapError, match=r"^eval_input_reader\[0\]\.label_map_path: 'nope"):
        check_pipeline(config, for_training=False)


def test_no_label_map_at_all_is_an_error(config):
    config.train_input_reader.ClearField("label_map_path")
    with pytest.raises(ConfigError, match=r"label_map_path: expected a path, found nothing"):
        check_pipeline(config, for_training=True)


@pytest.mark.parametrize("for_training", [True, False])
def test_another_number_of_classes_than_the_label_maps_is_an_error(config, for_training):
    config.model.ssd.num_classes = 3
    with pytest.raises(LabelMapError, match=r"^map\.pbtxt: the highest id is 2 .* is 3; set"):
        check_pipeline(config, for_training=for_training)


def test_a_placeholder_is_an_error_that_says_what_to_do(config):
    config.train_input_reader.label_map_path = "PATH_TO_BE_CONFIGURED/map.pbtxt"
    with pytest.raises(ConfigError, match="still the placeholder of the sample config; put"):
        check_pipeline(config, for_training=True)


def test_impossible_numbers_are_an_error(config):
    config.train_config.batch_size = 0
    with pytest.raises(ConfigError, match=r"^train_config\.batch_size: expected 1 or more"):
        check_pipeline(config, for_training=True)


def test_several_problems_are_listed_in_one_error_of_the_first_ones_type(config):
    config.train_config.fine_tune_checkpoint = "nope"
    config.train_input_reader.label_map_path = "nope.pbtxt"
    config.train_input_reader.tf_record_input_reader.input_path.append(NEVER)
    with pytest.raises(FineTuneError) as error:
        check_pipeline(config, for_training=True)
    first, *lines = str(error.value).splitlines()
    assert first == "3 problems:"
    assert [line[:5] for line in lines] == ["  1. ", "  2. ", "  3. "]


def test_an_evaluator_needs_an_eval_set(config):
    config.ClearField("eval_input_reader")
    with pytest.raises(ConfigError, match="eval_input_reader: expected at least one"):
        check_pipeline(config, for_training=False)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["day", "day"], r"\[1\]\.name: 'day' is the name of eval_input_reader\[0\]"),
        (["day", ""], r"\[1\]\.name: with several sets each needs a name"),
        (["a/b"], r"\[0\]\.name: expected letters, digits, .* found 'a/b'"),
        ([".."], r"found '\.\.'"),
    ],
)
@pytest.mark.parametrize("for_training", [True, False])
def test_eval_sets_need_names_that_tell_them_apart(config, names, expected, for_training):
    reader = config.eval_input_reader[0]
    copies = [type(reader)() for _ in names]
    for copy, name in zip(copies, names, strict=True):
        copy.CopyFrom(reader)
        copy.name = name
    config.ClearField("eval_input_reader")
    config.eval_input_reader.extend(copies)
    with pytest.raises(ConfigError, match=expected):
        check_pipeline(config, for_training=for_training)


def test_quantised_training_is_refused_rather_than_forgotten(config):
    config.graph_rewriter.quantization.delay = 100
    with pytest.raises(ConfigError, match="graph_rewriter: quantised training is not supported"):
        check_pipeline(config, for_training=True)


def test_nothing_is_written(config, tmp_path):
    before = sorted(tmp_path.iterdir())
    config.train_config.batch_size = 0
    with pytest.raises(ConfigError):
        check_pipeline(config, for_training=True)
    assert sorted(tmp_path.iterdir()) == before
