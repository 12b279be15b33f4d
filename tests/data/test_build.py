import logging

import pytest
from google.protobuf import text_format

from tandem import fields
from tandem.config.label_maps import load_label_map
from tandem.config.pipeline import load_pipeline
from tandem.data.build import (
    build_evaluation_dataset,
    build_records,
    build_resizer,
    build_training_dataset,
    fit_shuffle_buffer,
    max_number_of_boxes,
)
from tandem.data.records import RecordFile, RecordSet
from tandem.data.resizers import FixedShapeResizer, ResizeMethod
from tandem.data.streams import ReadOptions
from tandem.errors import ConfigError, DataError
from tandem.protos.input_reader_pb2 import InputReader
from tandem.protos.model_pb2 import DetectionModel
from tandem.protos.pipeline_pb2 import TrainEvalPipelineConfig
from tandem.protos.train_pb2 import TrainConfig

MODEL = "model { ssd { image_resizer { fixed_shape_resizer { height: 12 width: 10 } } } }"


def parse(text, message):
    return text_format.Parse(text, message())


@pytest.fixture
def path(serialize, write_records):
    return write_records([serialize(image__source_id=f"i{i}") for i in range(5)])


@pytest.fixture
def make_config(path):
    def make(reader="", train="batch_size: 2"):
        return parse(
            f"{MODEL} train_config {{ {train} }} train_input_reader {{ {reader}"
            f" tf_record_input_reader {{ input_path: '{path}' }} }}",
            TrainEvalPipelineConfig,
        )

    return make


def build_training(config, **options):
    return build_training_dataset(config, label_map=None, num_classes=2, seed=0, **options)


def test_a_config_becomes_a_training_pipeline(make_config):
    config = make_config(
        train="batch_size: 2 data_augmentation_options { random_horizontal_flip {} }"
    )

    pipeline = build_training(config)
    batch = next(pipeline.batches())

    assert batch[fields.IMAGE].shape == [2, 12, 10, 3]
    assert batch[fields.BOXES].shape == [2, 100, 4]
    assert pipeline.num_examples == 5
    assert build_training(config, batch_size=3).batch_size == 3


def test_a_step_to_resume_at_counts_in_batches(make_config):
    config = make_config()
    whole = build_training(config).batches()
    records = [next(whole)[fields.RECORD].numpy().tolist() for _ in range(6)]

    resumed = next(build_training(config, first_step=5).batches())

    assert resumed[fields.RECORD].numpy().tolist() == records[5]


def test_a_config_becomes_an_evaluation_pipeline(path, tmp_path):
    (tmp_path / "map.pbtxt").write_text("item { id: 1 name: 'a' } item { id: 2 name: 'b' }")
    reader = parse(f"tf_record_input_reader {{ input_path: '{path}' }} num_readers: 6", InputReader)

    pipeline = build_evaluation_dataset(
        reader,
        resizer=FixedShapeResizer(12, 10),
        label_map=load_label_map(str(tmp_path / "map.pbtxt")),
        num_classes=2,
        batch_size=8,
    )

    (batch,) = pipeline.batches()
    assert batch[fields.SOURCE_ID].numpy().tolist() == [b"i0", b"i1", b"i2", b"i3", b"i4"]
    assert pipeline.num_examples == 5


def test_the_seeds_own_config_builds_on_real_records(shared):
    pets = shared / "realdata/tfrecords/upstream/pets_examples.record"
    config = load_pipeline(
        str(shared / "seed/ssdlite_mobiledet_cpu_books.config"),
        overrides=[
            f"train_input_reader {{ tf_record_input_reader {{ input_path: '{pets}' }} }}",
            "train_config { batch_size: 4 }",
        ],
    )

    batch = next(build_training_dataset(config, label_map=None, num_classes=37, seed=0).batches())

    assert batch[fields.IMAGE].shape == [4, 320, 320, 3]


@pytest.mark.parametrize(
    "field",
    [
        "load_instance_masks: true",
        "num_keypoints: 17",
        "use_keypoint_label_map: true",
        "keypoint_type_weight: 1",
        "load_keypoint_depth_features: true",
        "load_dense_pose: true",
        "load_track_id: true",
        "load_multiclass_scores: true",
        "load_context_features: true",
        "load_context_image_ids: true",
        "num_additional_channels: 1",
        "expand_labels_hierarchy: true",
        "sample_from_datasets_weights: 1",
        "frame_index: 0",
        "input_type: TF_SEQUENCE_EXAMPLE",
        "external_input_reader {}",
    ],
)
def test_what_a_reader_cannot_honour_is_refused_by_name(field):
    name = field.split(":")[0].split(" ")[0]

    with pytest.raises(ConfigError, match=rf"eval_input_reader\[1\]\.{name} is "):
        build_records(parse(field, InputReader), field="eval_input_reader[1]")


@pytest.mark.parametrize(
    ("reader", "message"),
    [
        ("", "tf_record_input_reader.input_path is missing"),
        ("sample_1_of_n_examples: 0", "sample_1_of_n_examples is 0"),
    ],
)
def test_a_reader_without_sense_is_refused(reader, message):
    with pytest.raises(ConfigError, match=message):
        build_records(parse(reader, InputReader), field="train_input_reader")


def test_a_missing_file_is_a_data_error():
    reader = parse("tf_record_input_reader { input_path: '/nope/x-*' }", InputReader)

    with pytest.raises(DataError, match="/nope/x-"):
        build_records(reader, field="train_input_reader")


def test_performance_hints_of_old_configs_are_no_error(make_config):
    hints = (
        "queue_capacity: 12 min_after_dequeue: 4 prefetch_size: 12 num_parallel_map_calls: 3"
        " num_parallel_batches: 1 filenames_shuffle_buffer_size: 5 include_source_id: true"
        " use_display_name: true mask_type: PNG_MASKS input_type: TF_EXAMPLE"
        " num_prefetch_batches: 0 read_block_length: 0"
    )

    assert next(build_training(make_config(hints)).batches())


def test_a_sample_of_the_records_is_taken(make_config):
    assert build_training(make_config("sample_1_of_n_examples: 2")).num_examples == 3


@pytest.mark.parametrize(
    ("reader", "train", "message"),
    [
        ("shuffle_buffer_size: 0", "batch_size: 2", "shuffle_buffer_size is 0"),
        ("num_epochs: 1", "batch_size: 6", "fill 0 batches of 6"),
        ("num_epochs: 2", "batch_size: 2 num_steps: 6", "fill 5 batches of 2, fewer than"),
        (
            "",
            "batch_size: 2 merge_multiple_label_boxes: true",
            "merge_multiple_label_boxes is true",
        ),
        ("", "batch_size: 2 use_multiclass_scores: true", "use_multiclass_scores is true"),
        ("max_number_of_boxes: 0", "batch_size: 2", "max_number_of_boxes is 0"),
    ],
)
def test_training_values_without_sense_are_refused(make_config, reader, train, message):
    with pytest.raises(ConfigError, match=message):
        build_training(make_config(reader, train))


def test_evaluation_takes_images_once_or_not_at_all(path):
    reader = parse(f"num_epochs: 2 tf_record_input_reader {{ input_path: '{path}' }}", InputReader)

    with pytest.raises(ConfigError, match=r"eval_input_reader\[0\].num_epochs is 2"):
        build_evaluation_dataset(
            reader, resizer=FixedShapeResizer(1, 1), label_map=None, num_classes=1
        )


@pytest.mark.parametrize(
    ("reader", "train", "expected"),
    [
        ("", "", 100),
        ("max_number_of_boxes: 30", "", 30),
        ("", "max_number_of_boxes: 40", 40),
        ("max_number_of_boxes: 40", "max_number_of_boxes: 40", 40),
    ],
)
def test_the_number_of_box_rows_may_stand_in_either_place(reader, train, expected):
    assert (
        max_number_of_boxes(parse(reader, InputReader), train_config=parse(train, TrainConfig))
        == expected
    )


def test_two_different_numbers_of_box_rows_are_refused():
    reader = parse("max_number_of_boxes: 30", InputReader)

    with pytest.raises(ConfigError, match=r"train_config\.max_number_of_boxes is 40, but"):
        max_number_of_boxes(reader, train_config=parse("max_number_of_boxes: 40", TrainConfig))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("height: 7 width: 9", FixedShapeResizer(7, 9)),
        ("", FixedShapeResizer(300, 300)),
        ("resize_method: AREA", FixedShapeResizer(300, 300, ResizeMethod.AREA)),
        ("resize_method: BICUBIC", FixedShapeResizer(300, 300, ResizeMethod.BICUBIC)),
        ("convert_to_grayscale: true", FixedShapeResizer(300, 300, grayscale=True)),
        (
            "resize_method: NEAREST_NEIGHBOR",
            FixedShapeResizer(300, 300, ResizeMethod.NEAREST_NEIGHBOR),
        ),
    ],
)
def test_the_resizer_comes_from_the_model(text, expected):
    config = f"ssd {{ image_resizer {{ fixed_shape_resizer {{ {text} }} }} }}"

    assert build_resizer(parse(config, DetectionModel)) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "ssd { image_resizer { keep_aspect_ratio_resizer {} } }",
            "model.ssd.image_resizer.keep_aspect_ratio_resizer",
        ),
        (
            "faster_rcnn { image_resizer { identity_resizer {} } }",
            "model.faster_rcnn.image_resizer.identity_resizer",
        ),
        ("", "only fixed_shape_resizer is supported"),
        (
            "ssd { image_resizer { fixed_shape_resizer { height: 0 } } }",
            "fixed_shape_resizer is 0 x 300",
        ),
    ],
)
def test_another_resizer_is_refused_by_name(text, message):
    with pytest.raises(ConfigError, match=message):
        build_resizer(parse(text, DetectionModel))


def test_the_shuffle_buffer_fits_the_set_and_the_memory(caplog):
    records = RecordSet((RecordFile("f", num_records=1000, num_bytes=1000 * 10**6),))

    def size(**options):
        return fit_shuffle_buffer(
            ReadOptions(**options), records=records, memory_limit_bytes=400 * 10**6
        )

    with caplog.at_level(logging.INFO):
        shrunk = size()
    assert shrunk.shuffle_buffer_size == 100  # a quarter of 400 MB in records of 1 MB
    assert "1000 records, about 1000 MB" in caplog.text
    assert "made smaller, to 100 records" in caplog.text
    assert size(shuffle_buffer_size=50).shuffle_buffer_size == 50
    assert size(shuffle=False).shuffle_buffer_size == 2048
    unlimited = fit_shuffle_buffer(ReadOptions(), records=records, memory_limit_bytes=None)
    assert unlimited.shuffle_buffer_size == 1000
