import io

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from tandem.data.images import StoredSize, decode_image, kind_of, stored_jpeg_size

ONES = np.ones((8, 8), np.uint8)


def encode(pixels, *, kind, mode=None, **options):
    file = io.BytesIO()
    image = (
        Image.fromarray(pixels) if mode is None else Image.frombytes(mode, (8, 8), pixels.tobytes())
    )
    image.save(file, kind, **options)
    return file.getvalue()


@pytest.mark.parametrize(
    ("encoded", "expected"),
    [
        (encode(ONES * 100, kind="PNG"), (100, 100, 100)),
        (encode(np.dstack([ONES * 10, ONES * 20, ONES * 30, ONES * 0]), kind="PNG"), (10, 20, 30)),
        (encode(np.full((8, 8), 40000, np.uint16), kind="PNG"), (156, 156, 156)),
        (encode(np.dstack([ONES * 10, ONES * 0]), kind="PNG", mode="LA"), (10, 10, 10)),
        (
            encode(np.dstack([ONES * v for v in (0, 255, 255, 0)]), kind="JPEG", mode="CMYK"),
            (255, 0, 0),
        ),
        (encode(ONES * 100, kind="JPEG"), (100, 100, 100)),
        (encode(ONES * 100, kind="GIF"), (100, 100, 100)),
        (encode(np.dstack([ONES * 10, ONES * 20, ONES * 30]), kind="BMP"), (10, 20, 30)),
        (encode(ONES * 10, kind="BMP"), (10, 10, 10)),
    ],
    ids=lambda value: value[:4].hex() if isinstance(value, bytes) else str(value),
)
def test_every_kind_becomes_eight_bit_rgb(encoded, expected):
    image = decode_image(tf.constant(encoded))

    assert image.shape == [8, 8, 3]
    assert image.dtype == tf.uint8
    assert (image.numpy() == expected).all()


@pytest.mark.parametrize(
    ("encoded", "kind"),
    [
        (b"", "empty"),
        (encode(ONES, kind="TIFF"), "TIFF"),
        (b"<!DOCTYPE html><html></html>", "HTML or XML"),
        (b"\0\1\2\3\4\5\6\7\x08", r"unknown (begins with b'\x00\x01\x02\x03\x04\x05\x06\x07')"),
        (encode(ONES, kind="JPEG"), "JPEG"),
        (encode(ONES, kind="PNG"), "PNG"),
    ],
)
def test_bytes_are_named_by_content(encoded, kind):
    assert kind_of(encoded) == kind


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_jpegs_header_tells_its_stored_size_and_turn(orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    encoded = encode(np.zeros((20, 40, 3), np.uint8), kind="JPEG", exif=exif)

    assert stored_jpeg_size(encoded) == StoredSize(20, 40, turned=orientation >= 5)
    assert decode_image(tf.constant(encoded)).shape == [20, 40, 3]


def test_a_jpeg_without_exif_is_not_turned_and_other_bytes_have_no_size():
    encoded = encode(np.zeros((20, 40), np.uint8), kind="JPEG", progressive=True)

    assert stored_jpeg_size(encoded) == StoredSize(20, 40, turned=False)
    assert stored_jpeg_size(encoded[:12]) is None
    assert stored_jpeg_size(b"GIF89a") is None


def test_real_photos_have_the_size_that_their_header_says(shared):
    path = shared / "realdata/tfrecords/users/datitran__raccoon_dataset__test.record"
    for serialized in tf.data.TFRecordDataset(str(path)).take(10).as_numpy_iterator():
        features = tf.train.Example.FromString(serialized).features.feature
        encoded = features["image/encoded"].bytes_list.value[0]
        image = decode_image(tf.constant(encoded))
        stored = stored_jpeg_size(encoded)
        if stored is None:
            assert kind_of(encoded) == "PNG"
        else:
            assert image.shape == [stored.height, stored.width, 3]
