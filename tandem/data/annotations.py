"""What is wrong with one record, in words: the rules every tf.Example has to keep.

The decoder (`tandem.data.decoding`) checks the same rules inside TensorFlow's graph, where it can
only say yes or no. This module reads the same bytes in Python and says which rule, which box and
which value; it runs over all records before training, and over a single one after the decoder
refused it.

Rules. The image is one non-empty encoded file. All per-box lists have the same length or are
absent. Boxes are finite, not inverted, of some area, within [0, 1]; one that overhangs the image by
up to `MAX_OVERHANG` of its side is clipped, as annotation tools round outwards. Every box has a
class: its text, looked up in the label map, or without texts (or without a label map) its label,
between 1 and the number of classes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError

from tandem.data import images
from tandem.errors import nearest_names

MAX_OVERHANG = 0.1
"""Of the image's side; the original refuses boxes beyond 1.1 as well."""

LOWEST, HIGHEST = float(np.float32(-MAX_OVERHANG)), float(np.float32(1 + MAX_OVERHANG))
"""The bounds of a coordinate as float32, the graph's type, so that both sides agree at the edge."""

PIXEL_COORDINATE = 2.0
"""A coordinate of this size is taken for pixels."""

COORDINATES = tuple(f"image/object/bbox/{side}" for side in ("ymin", "xmin", "ymax", "xmax"))
KINDS = {
    "image/encoded": "bytes_list",
    "image/format": "bytes_list",
    "image/source_id": "bytes_list",
    **dict.fromkeys(COORDINATES, "float_list"),
    "image/object/class/text": "bytes_list",
    "image/object/class/label": "int64_list",
    "image/object/weight": "float_list",
    "image/object/area": "float_list",
    "image/object/is_crowd": "int64_list",
}
_PER_BOX = tuple(key for key in KINDS if key.startswith("image/object/"))


@dataclass(frozen=True)
class Examination:
    """What one record holds.

    Attributes:
        source_id: `image/source_id`; empty when absent.
        problems: why the record can't be used; empty when it can.
        num_boxes: of the image, where the lists agree.
        num_clipped_boxes: that overhang the image a little.
        num_label_conflicts: boxes whose text and label disagree; the text wins.
        turned: its EXIF orientation tells viewers to turn the image, and the record's own height
            and width are the turned ones: the boxes were probably drawn on the turned image.
    """

    source_id: str
    problems: tuple[str, ...]
    num_boxes: int = 0
    num_clipped_boxes: int = 0
    num_label_conflicts: int = 0
    turned: bool = False


def examine(
    serialized: bytes, *, label_ids: Mapping[str, int] | None, num_classes: int
) -> Examination:
    """Examines one record.

    Args:
        serialized: a tf.Example.
        label_ids: label map's name -> id, None without a label map.
        num_classes: of the model; ids are 1 to this.
    """
    try:
        features = tf.train.Example.FromString(serialized).features.feature
    except DecodeError:
        return Examination("", ("it is no tf.Example",))
    if "image/encoded" not in features and _is_sequence(serialized):
        return Examination("", ("it is a tf.SequenceExample, expected a tf.Example",))
    kinds = tuple(_kind_problems(features))
    if kinds:
        return Examination("", kinds)
    lists = {key: _values(features, key) for key in KINDS}
    source_id = b"".join(lists["image/source_id"]).decode(errors="replace")
    lengths = tuple(_length_problems(lists))
    if lengths:
        return Examination(source_id, (*_image_problems(lists), *lengths))
    texts = lists["image/object/class/text"] if label_ids is not None else []
    boxes = list(zip(*(lists[key] for key in COORDINATES), strict=True))
    problems = [*_image_problems(lists), *_box_problems(boxes), *_extra_problems(lists)]
    if texts:
        problems += _text_problems(texts, label_ids=label_ids or {}, num_classes=num_classes)
    else:
        problems += _label_problems(lists["image/object/class/label"], num_classes=num_classes)
    return Examination(
        source_id,
        tuple(problems),
        num_boxes=len(boxes),
        num_clipped_boxes=sum(min(box) < 0 or max(box) > 1 for box in boxes),
        num_label_conflicts=_num_conflicts(
            texts, lists["image/object/class/label"], label_ids=label_ids or {}
        ),
        turned=_is_turned(features),
    )


def _is_sequence(serialized: bytes) -> bool:
    return bool(tf.train.SequenceExample.FromString(serialized).feature_lists.feature_list)


def _values(features: Any, key: str) -> Sequence[Any]:  # noqa: ANN401
    return getattr(features[key], KINDS[key]).value if key in features else []


def _kind_problems(features: Any) -> Iterator[str]:  # noqa: ANN401
    for key, kind in KINDS.items():
        found = features[key].WhichOneof("kind") if key in features else None
        if found not in (None, kind):
            yield f"{key} is a {found}, expected a {kind}"


def _image_problems(lists: Mapping[str, Sequence[Any]]) -> Iterator[str]:
    encoded, stored_format = lists["image/encoded"], lists["image/format"]
    if len(encoded) != 1:
        yield f"image/encoded has {len(encoded)} values, expected one encoded image"
    elif not encoded[0]:
        yield "image/encoded is empty"
    if len(stored_format) == 1 and stored_format[0].lower() == b"raw":
        yield "image/format is 'raw': raw pixels are not supported, expected JPEG, PNG, GIF or BMP"


def _length_problems(lists: Mapping[str, Sequence[Any]]) -> Iterator[str]:
    counts = {key: len(lists[key]) for key in _PER_BOX}
    corners = {key: counts[key] for key in COORDINATES}
    if len(set(corners.values())) > 1:
        yield "the box lists differ in length: " + _listed(corners)
        return
    num_boxes = counts[COORDINATES[0]]
    others = {k: n for k, n in counts.items() if k not in corners and n not in (0, num_boxes)}
    if others:
        yield f"there are {num_boxes} boxes, but " + _listed(others)
    has_class = counts["image/object/class/text"] or counts["image/object/class/label"]
    if num_boxes and not has_class:
        yield f"there are {num_boxes} boxes, but neither class/text nor class/label"


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{key} has {count}" for key, count in counts.items())


def _box_problems(boxes: Sequence[tuple[float, ...]]) -> Iterator[str]:
    for index, box in enumerate(boxes):
        problem = _box_problem(box)
        if problem:
            corners = ", ".join(f"{value:.6g}" for value in box)
            yield f"box {index} (ymin, xmin, ymax, xmax) = ({corners}) {problem}"


def _box_problem(box: tuple[float, ...]) -> str:
    ymin, xmin, ymax, xmax = box
    if not all(math.isfinite(value) for value in box):
        return "is not finite"
    if max(abs(value) for value in box) >= PIXEL_COORDINATE:
        return "looks like pixels: coordinates have to be divided by the image's height and width"
    if ymin > ymax or xmin > xmax:
        return "is inverted"
    if ymin == ymax or xmin == xmax:
        return "has no area"
    if min(box) < LOWEST or max(box) > HIGHEST:
        return f"overhangs the image by more than {MAX_OVERHANG:.0%}"
    if min(1, ymax) <= max(0, ymin) or min(1, xmax) <= max(0, xmin):
        return "lies outside the image"
    return ""


def _extra_problems(lists: Mapping[str, Sequence[Any]]) -> Iterator[str]:
    for key in ("image/object/weight", "image/object/area"):
        for index, value in enumerate(lists[key]):
            if not (math.isfinite(value) and value >= 0):
                yield f"{key} of box {index} is {value:.6g}, expected a finite number from 0 up"


def _text_problems(
    texts: Sequence[bytes], *, label_ids: Mapping[str, int], num_classes: int
) -> Iterator[str]:
    for index, raw in enumerate(texts):
        text = raw.decode(errors="replace")
        label = label_ids.get(text)
        if label is None:
            hint = _nearest(text, label_ids)
            yield f"class text {text!r} of box {index} is not in the label map{hint}"
        elif not 1 <= label <= num_classes:
            yield f"class text {text!r} of box {index} is label {label}, outside 1 to {num_classes}"


def _nearest(text: str, label_ids: Mapping[str, int]) -> str:
    same = [name for name in label_ids if name.strip().casefold() == text.strip().casefold()]
    return f"; did you mean {same[0]!r}?" if same else nearest_names(text, label_ids)


def _label_problems(labels: Sequence[int], *, num_classes: int) -> Iterator[str]:
    for index, label in enumerate(labels):
        if not 1 <= label <= num_classes:
            yield f"class/label {label} of box {index} is outside 1 to {num_classes} (num_classes)"


def _num_conflicts(
    texts: Sequence[bytes], labels: Sequence[int], *, label_ids: Mapping[str, int]
) -> int:
    pairs = zip(texts, labels, strict=False)  # one of the two may be absent
    return sum(
        label_ids.get(text.decode(errors="replace"), label) != label for text, label in pairs
    )


def _is_turned(features: Any) -> bool:  # noqa: ANN401
    encoded = _values(features, "image/encoded")
    stored = images.stored_jpeg_size(encoded[0]) if encoded else None
    if stored is None or not stored.turned or stored.height == stored.width:
        return False
    stated = tuple(
        tuple(features[key].int64_list.value) if key in features else ()
        for key in ("image/height", "image/width")
    )
    return stated == ((stored.width,), (stored.height,))
