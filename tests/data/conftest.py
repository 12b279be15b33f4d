"""Small records, made by hand."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

PICTURE = tf.io.encode_png(
    np.arange(6 * 8 * 3, dtype=np.uint8).reshape(6, 8, 3)
).numpy()  # 6 high, 8 wide

INTEGERS = ("image/object/class/label", "image/object/is_crowd", "image/height", "image/width")


def _feature(key, values):
    values = values if isinstance(values, list) else [values]
    if values and isinstance(values[0], (bytes, str)):
        raw = [v.encode() if isinstance(v, str) else v for v in values]
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=raw))
    if key in INTEGERS:
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def _serialize(boxes=((0.25, 0.125, 0.75, 0.625),), labels=None, texts=None, **others):
    corners = np.array(boxes, np.float32).reshape(-1, 4)
    features = {
        "image/encoded": PICTURE,
        "image/format": b"png",
        "image/source_id": b"a.png",
        "image/object/class/label": [1] * len(corners) if labels is None else list(labels),
    }
    for column, side in enumerate(("ymin", "xmin", "ymax", "xmax")):
        features[f"image/object/bbox/{side}"] = corners[:, column].tolist()
    if texts is not None:
        features["image/object/class/text"] = list(texts)
    features |= {name.replace("__", "/"): value for name, value in others.items()}
    return tf.train.Example(
        features=tf.train.Features(
            feature={k: _feature(k, v) for k, v in features.items() if v is not None}
        )
    ).SerializeToString()


@pytest.fixture(scope="session")
def serialize() -> Callable[..., bytes]:
    """Makes a tf.Example of one 6 x 8 picture; a keyword like `image__object__area` sets a key."""
    return _serialize


@pytest.fixture
def write_records(tmp_path) -> Callable[..., str]:
    """Writes serialized examples into a new file and returns its path."""

    def write(serialized, name="a.record") -> str:
        path = Path(tmp_path) / name
        with tf.io.TFRecordWriter(str(path)) as writer:
            for record in serialized:
                writer.write(record)
        return str(path)

    return write
