"""Input pipelines from a pipeline.config.

What of `InputReader` is honoured, besides the files and the label map: `shuffle`,
`shuffle_buffer_size`, `num_epochs`, `num_readers`, `read_block_length`, `num_prefetch_batches`,
`drop_remainder` and `max_number_of_boxes` in training; `sample_1_of_n_examples` always.

What has no effect, as there is nothing left that it could change: `queue_capacity`,
`min_after_dequeue`, `prefetch_size`, `num_parallel_map_calls`, `num_parallel_batches` (TensorFlow
tunes the number of parallel calls), `filenames_shuffle_buffer_size` (all names are shuffled),
`include_source_id` (always there), `use_display_name` (a text is looked up among names and display
names), `mask_type` (masks are refused). And in evaluation, which takes each image once, in order,
with all its boxes: `shuffle`, `shuffle_buffer_size`, `num_readers`, `read_block_length`,
`drop_remainder` and `max_number_of_boxes`.

The rest is refused by name.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from google.protobuf.message import Message

from tandem.config.label_maps import LabelMap
from tandem.data.augment.build import build_steps
from tandem.data.decoding import ClassTable
from tandem.data.pipelines import InputPipeline, evaluation_dataset, training_dataset
from tandem.data.records import RecordSet, open_records
from tandem.data.resizers import FixedShapeResizer, ResizeMethod
from tandem.data.streams import ReadOptions
from tandem.errors import ConfigError
from tandem.protos.image_resizer_pb2 import ResizeType
from tandem.protos.input_reader_pb2 import TF_SEQUENCE_EXAMPLE, InputReader
from tandem.protos.model_pb2 import DetectionModel
from tandem.protos.pipeline_pb2 import TrainEvalPipelineConfig
from tandem.protos.train_pb2 import TrainConfig

_LOGGER = logging.getLogger(__name__)

_TRAIN_READER = "train_input_reader"
_SHUFFLE_MEMORY_SHARE = 0.25  # of the limit: the rest is the model's and the batches'

_REFUSED = {
    "external_input_reader": "only tf_record_input_reader is supported",
    "load_instance_masks": "instance masks are not supported",
    "num_keypoints": "keypoints are not supported",
    "use_keypoint_label_map": "keypoints are not supported",
    "keypoint_type_weight": "keypoints are not supported",
    "load_keypoint_depth_features": "keypoints are not supported",
    "load_dense_pose": "DensePose is not supported",
    "load_track_id": "tracking is not supported",
    "load_multiclass_scores": "soft labels are not supported",
    "load_context_features": "context features are not supported",
    "load_context_image_ids": "context features are not supported",
    "num_additional_channels": "images have three channels",
    "expand_labels_hierarchy": "label hierarchies are not supported",
    "sample_from_datasets_weights": "all input paths are read evenly; list a file per record set",
}
_RESIZE_METHODS = {
    ResizeType.BILINEAR: ResizeMethod.BILINEAR,
    ResizeType.NEAREST_NEIGHBOR: ResizeMethod.NEAREST_NEIGHBOR,
    ResizeType.BICUBIC: ResizeMethod.BICUBIC,
    ResizeType.AREA: ResizeMethod.AREA,
}


def build_training_dataset(
    config: TrainEvalPipelineConfig,
    *,
    label_map: LabelMap | None,
    num_classes: int,
    seed: int,
    batch_size: int | None = None,
    first_step: int = 0,
    memory_limit_bytes: int | None = None,
) -> InputPipeline:
    """Builds the training pipeline.

    Args:
        config: the merged pipeline.config.
        label_map: None reads class/label only.
        num_classes: of the model.
        seed: of the order of images and of the augmentations.
        batch_size: the config's when None.
        first_step: step that a resumed run begins at; the images go on where it stopped.
        memory_limit_bytes: of the process; a shuffle buffer of more than a quarter of it is made
            smaller.

    Raises:
        ConfigError, DataError: what can't be honoured, or is wrong with the files.
    """
    reader = config.train_input_reader
    _refuse_train_fields(config.train_config)
    records = build_records(reader, field=_TRAIN_READER)
    batch_size = batch_size or config.train_config.batch_size
    options = _read_options(reader)
    num_steps = config.train_config.num_steps
    _check_length(options, records=records, batch_size=batch_size, num_steps=num_steps)
    return training_dataset(
        records,
        classes=_classes(label_map, num_classes=num_classes),
        resizer=build_resizer(config.model),
        steps=build_steps(config.train_config.data_augmentation_options),
        options=fit_shuffle_buffer(options, records=records, memory_limit_bytes=memory_limit_bytes),
        batch_size=batch_size,
        max_boxes=max_number_of_boxes(reader, train_config=config.train_config),
        seed=seed,
        first_example=first_step * batch_size,
        drop_remainder=reader.drop_remainder,
        prefetch_batches=max(1, reader.num_prefetch_batches),
    )


def build_evaluation_dataset(
    reader: InputReader,
    *,
    resizer: FixedShapeResizer,
    label_map: LabelMap | None,
    num_classes: int,
    batch_size: int = 1,
    field: str = "eval_input_reader[0]",
) -> InputPipeline:
    """Builds the pipeline of one evaluation set.

    Args:
        reader: one of the config's `eval_input_reader`.
        resizer: the model's, of `build_resizer`.
        label_map: None reads class/label only.
        num_classes: of the model.
        batch_size: images per batch; the last may be smaller.
        field: the reader's path in the config, for messages.

    Raises:
        ConfigError, DataError: what can't be honoured, or is wrong with the files.
    """
    if reader.num_epochs > 1:
        raise ConfigError(
            f"{field}.num_epochs is {reader.num_epochs}, but evaluation takes every image once; "
            "set 1 or remove it"
        )
    return evaluation_dataset(
        build_records(reader, field=field),
        classes=_classes(label_map, num_classes=num_classes),
        resizer=resizer,
        batch_size=batch_size,
        prefetch_batches=max(1, reader.num_prefetch_batches),
    )


def build_records(reader: InputReader, *, field: str) -> RecordSet:
    """Checks a reader's fields, then finds and counts its records.

    Raises:
        ConfigError: a field asks for what is not supported.
        DataError: a file is missing, empty or damaged.
    """
    for name, reason in _REFUSED.items():
        if _is_set(reader, name):
            raise ConfigError(f"{field}.{name} is set, but {reason}; remove it")
    if reader.input_type == TF_SEQUENCE_EXAMPLE:
        raise ConfigError(
            f"{field}.input_type is TF_SEQUENCE_EXAMPLE; only TF_EXAMPLE is supported"
        )
    if reader.frame_index != -1:
        raise ConfigError(f"{field}.frame_index is set, but it is for TF_SEQUENCE_EXAMPLE only")
    if reader.sample_1_of_n_examples < 1:
        raise ConfigError(f"{field}.sample_1_of_n_examples is 0; expected 1 or more")
    patterns = tuple(reader.tf_record_input_reader.input_path)
    if not patterns:
        raise ConfigError(f"{field}.tf_record_input_reader.input_path is missing; name a TFRecord")
    return open_records(patterns, one_of_n=reader.sample_1_of_n_examples)


def build_resizer(model: DetectionModel) -> FixedShapeResizer:
    """Builds the model's image resizer.

    Raises:
        ConfigError: it is of another kind than `fixed_shape_resizer`.
    """
    kind = model.WhichOneof("model") or "ssd"
    field = f"model.{kind}.image_resizer"
    config = getattr(getattr(model, kind), "image_resizer", None)
    resizer = config.WhichOneof("image_resizer_oneof") if config is not None else None
    if config is None or resizer != "fixed_shape_resizer":
        raise ConfigError(f"{field}.{resizer or '(none)'}: only fixed_shape_resizer is supported")
    fixed = config.fixed_shape_resizer
    if fixed.height < 1 or fixed.width < 1:
        raise ConfigError(
            f"{field}.fixed_shape_resizer is {fixed.height} x {fixed.width}; expected 1 or more"
        )
    method = _RESIZE_METHODS[fixed.resize_method]
    return FixedShapeResizer(fixed.height, fixed.width, method, fixed.convert_to_grayscale)


def max_number_of_boxes(reader: InputReader, *, train_config: TrainConfig) -> int:
    """The number of box rows in training; `train_config` has a deprecated field for it too.

    Raises:
        ConfigError: both are set and differ, or it isn't positive.
    """
    number, other = reader.max_number_of_boxes, train_config.max_number_of_boxes
    if train_config.HasField("max_number_of_boxes"):
        if reader.HasField("max_number_of_boxes") and number != other:
            raise ConfigError(
                f"train_config.max_number_of_boxes is {other}, but "
                f"{_TRAIN_READER}.max_number_of_boxes is {number}; remove one"
            )
        number = other
    if number < 1:
        raise ConfigError(f"{_TRAIN_READER}.max_number_of_boxes is {number}; expected 1 or more")
    return number


def fit_shuffle_buffer(
    options: ReadOptions, *, records: RecordSet, memory_limit_bytes: int | None
) -> ReadOptions:
    """Makes the shuffle buffer no larger than the record set and a quarter of the memory limit."""
    if not options.shuffle:
        return options
    size = min(options.shuffle_buffer_size, records.num_records)
    num_bytes = int(size * records.mean_record_bytes)
    _LOGGER.info("the shuffle buffer holds %d records, about %d MB", size, num_bytes // 10**6)
    allowed = (
        num_bytes if memory_limit_bytes is None else memory_limit_bytes * _SHUFFLE_MEMORY_SHARE
    )
    if num_bytes > allowed:
        size = max(1, int(allowed / records.mean_record_bytes))
        _LOGGER.warning(
            "a shuffle buffer of %d MB is more than a quarter of the memory limit (%d MB); "
            "it is made smaller, to %d records (%s.shuffle_buffer_size)",
            num_bytes // 10**6,
            (memory_limit_bytes or 0) // 10**6,
            size,
            _TRAIN_READER,
        )
    return replace(options, shuffle_buffer_size=size)


def _refuse_train_fields(train_config: TrainConfig) -> None:
    for name in ("merge_multiple_label_boxes", "use_multiclass_scores"):
        if getattr(train_config, name):
            raise ConfigError(
                f"train_config.{name} is true, but a box has exactly one class here; remove it"
            )


def _read_options(reader: InputReader) -> ReadOptions:
    if reader.shuffle and reader.shuffle_buffer_size < 1:
        raise ConfigError(f"{_TRAIN_READER}.shuffle_buffer_size is 0; expected 1 or more")
    return ReadOptions(
        shuffle=reader.shuffle,
        shuffle_buffer_size=reader.shuffle_buffer_size,
        num_readers=reader.num_readers,
        read_block_length=reader.read_block_length,
        num_epochs=reader.num_epochs or None,
    )


def _check_length(
    options: ReadOptions, *, records: RecordSet, batch_size: int, num_steps: int
) -> None:
    if not options.num_epochs:
        return
    num_batches = options.num_epochs * records.num_records // batch_size
    if num_batches < max(1, num_steps):
        raise ConfigError(
            f"{_TRAIN_READER}.num_epochs {options.num_epochs} of {records.num_records} records "
            f"fill {num_batches} batches of {batch_size}, fewer than num_steps {num_steps}; raise "
            "or remove it"
        )


def _classes(label_map: LabelMap | None, *, num_classes: int) -> ClassTable:
    ids = None if label_map is None else label_map.ids_by_name
    return ClassTable.of(ids, num_classes=num_classes)


def _is_set(message: Message, name: str) -> bool:
    value = getattr(message, name)
    return message.HasField(name) if isinstance(value, Message) else bool(value)
