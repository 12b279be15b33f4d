"""From one serialized tf.Example to an example dict, inside TensorFlow's graph.

A record that breaks a rule of `tandem.data.annotations` fails an assertion here. TensorFlow's text
says little; `tandem.data.batches` catches it and asks `why_refused` about each record of the batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import tensorflow as tf

from tandem import fields
from tandem.data.annotations import COORDINATES, HIGHEST, KINDS, LOWEST, examine
from tandem.data.images import DECODABLE_KINDS, decode_image, kind_of

Example = dict[str, tf.Tensor]

_DTYPES = {"bytes_list": tf.string, "float_list": tf.float32, "int64_list": tf.int64}
# Ragged without partitions: each list as it is, empty when the key is absent.
_FEATURES = {key: tf.io.RaggedFeature(_DTYPES[kind]) for key, kind in KINDS.items()}
_UNKNOWN_ID = -1


@dataclass(frozen=True)
class ClassTable:
    """Class text -> label-map id.

    Attributes:
        num_classes: of the model; ids are 1 to this.
        label_ids: label map's name -> id; None without a label map, when only class/label is read.
        table: the same for the graph.
    """

    num_classes: int
    label_ids: Mapping[str, int] | None = None
    table: tf.lookup.StaticHashTable | None = None

    @classmethod
    def of(cls, label_ids: Mapping[str, int] | None, *, num_classes: int) -> ClassTable:
        """Makes the table of a label map's name -> id; to be called eagerly."""
        if label_ids is None:
            return cls(num_classes)
        names = tf.constant(list(label_ids), tf.string)
        ids = tf.constant(list(label_ids.values()), tf.int64)
        initializer = tf.lookup.KeyValueTensorInitializer(names, ids)
        table = tf.lookup.StaticHashTable(initializer, _UNKNOWN_ID)
        return cls(num_classes, label_ids, table)


def decode_example(serialized: tf.Tensor, *, record: tf.Tensor, classes: ClassTable) -> Example:
    """Decodes one record.

    Args:
        serialized: [] string, a tf.Example.
        record: [] string, its id.
        classes: what class texts mean.

    Returns:
        The example dict of `tandem.fields`, without TRUE_SIZE; IMAGE [height, width, 3] uint8,
        boxes clipped to the image.

    Raises:
        tf.errors.InvalidArgumentError: the record breaks a rule of `tandem.data.annotations`, or
            its image can't be decoded.
    """
    lists = tf.io.parse_single_example(serialized, _FEATURES)
    boxes = tf.stack([lists[key] for key in COORDINATES], axis=1)
    num_boxes = tf.shape(boxes)[0]
    labels = _labels(lists, classes=classes)
    weights = _per_box(lists["image/object/weight"], num_boxes, default=1.0)
    area = _per_box(lists["image/object/area"], num_boxes, default=0.0)
    is_crowd = _per_box(lists["image/object/is_crowd"], num_boxes, default=0)
    clipped = tf.clip_by_value(boxes, 0.0, 1.0)
    with tf.control_dependencies(
        [
            *_length_checks(lists, num_boxes),
            _check(_are_sound(boxes, clipped), "a box is unsound"),
            _check((labels >= 1) & (labels <= classes.num_classes), "a class is out of range"),
            _check(_is_amount(weights) & _is_amount(area), "a weight or an area is unsound"),
            _check(tf.strings.lower(lists["image/format"]) != "raw", "raw pixels"),
        ]
    ):
        image = decode_image(tf.reshape(lists["image/encoded"], []))
    return {
        fields.IMAGE: image,
        fields.SOURCE_ID: tf.strings.reduce_join(lists["image/source_id"]),
        fields.RECORD: record,
        fields.ORIGINAL_SIZE: tf.shape(image)[:2],
        fields.BOXES: clipped,
        fields.CLASSES: tf.cast(labels - 1, tf.int32),
        fields.WEIGHTS: weights,
        fields.IS_CROWD: is_crowd != 0,
        fields.AREA: area,
        fields.NUM_BOXES: num_boxes,
    }


def why_refused(serialized: bytes, *, classes: ClassTable) -> str:
    """Says why `decode_example` refuses a record, with its source_id; empty when it doesn't."""
    found = examine(serialized, label_ids=classes.label_ids, num_classes=classes.num_classes)
    problems = found.problems
    if not problems:
        try:
            decode_example(tf.constant(serialized), record=tf.constant(""), classes=classes)
        except tf.errors.InvalidArgumentError as error:
            problems = (_why_undecodable(serialized) or f"it can't be decoded: {error.message}",)
    return f"(source_id {found.source_id!r}): {'; '.join(problems)}" if problems else ""


def _why_undecodable(serialized: bytes) -> str:
    lists = tf.io.parse_single_example(serialized, _FEATURES)
    (encoded,) = lists["image/encoded"].numpy()
    try:
        decode_image(tf.constant(encoded))
    except tf.errors.InvalidArgumentError:
        kind = kind_of(encoded)
        if kind in DECODABLE_KINDS:
            return f"image/encoded is a {kind} of {len(encoded)} bytes that is cut short or damaged"
        return f"image/encoded is no image: {kind}; expected one of {', '.join(DECODABLE_KINDS)}"
    return ""


def _labels(lists: Mapping[str, tf.Tensor], *, classes: ClassTable) -> tf.Tensor:
    labels, texts = lists["image/object/class/label"], lists["image/object/class/text"]
    table = classes.table
    if table is None:
        return labels
    return tf.cond(tf.size(texts) > 0, lambda: table.lookup(texts), lambda: labels)


def _per_box(values: tf.Tensor, num_boxes: tf.Tensor, *, default: float) -> tf.Tensor:
    filled = tf.fill([num_boxes], tf.cast(default, values.dtype))
    return tf.cond(tf.size(values) > 0, lambda: values, lambda: filled)


def _length_checks(lists: Mapping[str, tf.Tensor], num_boxes: tf.Tensor) -> list[tf.Operation]:
    optional = [key for key in lists if key.startswith("image/object/") and key not in COORDINATES]
    lengths = tf.stack([tf.size(lists[key]) for key in optional])
    num_classes = tf.size(lists["image/object/class/text"]) + tf.size(
        lists["image/object/class/label"]
    )
    return [
        _check((lengths == 0) | (lengths == num_boxes), "lists differ in length"),
        _check((num_boxes == 0) | (num_classes > 0), "boxes without classes"),
    ]


def _are_sound(boxes: tf.Tensor, clipped: tf.Tensor) -> tf.Tensor:
    within = (boxes >= LOWEST) & (boxes <= HIGHEST)  # false for NaN too
    ymin, xmin, ymax, xmax = tf.unstack(clipped, axis=1)
    return tf.reduce_all(within, axis=1) & (ymin < ymax) & (xmin < xmax)


def _is_amount(values: tf.Tensor) -> tf.Tensor:
    return (values >= 0) & tf.math.is_finite(values)


def _check(conditions: tf.Tensor, what: str) -> tf.Operation | None:
    return tf.debugging.Assert(tf.reduce_all(conditions), [what])
