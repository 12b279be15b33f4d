"""Reads a pipeline.config and the overrides on top of it.

An override is a text proto of the same message, such as ``train_config { num_steps: 500 }``:

- a singular field takes the override's value;
- a message is merged field by field, so that what the override doesn't name stays;
- another member of a oneof replaces the one that was there;
- a repeated field or a map is replaced as a whole: to change one of several
  ``data_augmentation_options`` or ``eval_input_reader`` blocks, give all that shall remain.
  (Protobuf's own merge appends, which would leave the old input files in.)

Later overrides win over earlier ones. An override can't remove a field; an empty string, 0 or
false says the same wherever that matters.
"""

from __future__ import annotations

from collections.abc import Sequence

from google.protobuf import text_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from tandem.config.files import read_text
from tandem.config.text import parse_text
from tandem.errors import ConfigError
from tandem.protos.model_pb2 import DetectionModel
from tandem.protos.pipeline_pb2 import TrainEvalPipelineConfig


def load_pipeline(path: str, *, overrides: Sequence[str] = ()) -> TrainEvalPipelineConfig:
    """Reads a pipeline.config and merges overrides into it, in their order.

    Raises:
        ConfigError: the file can't be read, or it or an override is no such text proto.
    """
    config = parse_text(read_text(path), TrainEvalPipelineConfig, source=path)
    for number, override in enumerate(overrides, 1):
        source = f"override {number} ({_shortened(override)})"
        _merge(config, parse_text(override, TrainEvalPipelineConfig, source=source))
    return config


def write_pipeline(config: TrainEvalPipelineConfig) -> str:
    """The config as text: fields in the order of their numbers, no comments."""
    return text_format.MessageToString(config)


def num_classes_of(config: TrainEvalPipelineConfig) -> int:
    """Object classes of the model, the background not counted.

    Raises:
        ConfigError: there is no model, it is of a kind without classes, or the number is below 1.
    """
    kind = config.model.WhichOneof("model")
    if kind not in ("ssd", "faster_rcnn", "center_net"):
        known = [f.name for f in DetectionModel.DESCRIPTOR.fields if f.name != "experimental_model"]
        raise ConfigError(f"model: expected one of {', '.join(known)}, found {kind or 'none'}")
    number: int = getattr(config.model, kind).num_classes
    if number < 1:
        raise ConfigError(f"model.{kind}.num_classes: expected 1 or more, found {number}")
    return number


def _merge(target: Message, override: Message) -> None:
    for field, value in override.ListFields():
        if field.is_repeated:
            target.ClearField(field.name)
            getattr(target, field.name).MergeFrom(value)
        elif field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
            child = getattr(target, field.name)
            child.SetInParent()
            _merge(child, value)
        else:
            setattr(target, field.name, value)


def _shortened(override: str) -> str:
    words = " ".join(override.split())
    return words if len(words) <= 60 else words[:57] + "..."
