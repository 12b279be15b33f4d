"""Encoded images: decoding them to pixels, and what their first bytes say.

`image/format` of real records lies (PNG bytes marked ``jpg``), so the bytes alone decide.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

import tensorflow as tf

DECODABLE_KINDS = ("JPEG", "PNG", "GIF", "BMP")
"""What every supported version of TensorFlow decodes."""

_KINDS = (
    (b"\xff\xd8\xff", "JPEG"),
    (b"\x89PNG\r\n\x1a\n", "PNG"),
    (b"GIF8", "GIF"),
    (b"BM", "BMP"),
    (b"II*\0", "TIFF"),
    (b"MM\0*", "TIFF"),
    (b"<", "HTML or XML"),
    (b"%PDF", "PDF"),
)
_EXIF_ORIENTATION_TAG = 0x0112
_TURNED_ORIENTATIONS = range(5, 9)  # EXIF: a viewer turns these by a quarter
_START_OF_FRAME = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
_START_OF_SCAN = 0xDA
_APP1 = 0xE1


class StoredSize(NamedTuple):
    """Size of an image as it is stored, and whether its EXIF tells viewers to turn it."""

    height: int
    width: int
    turned: bool


def decode_image(encoded: tf.Tensor) -> tf.Tensor:
    """Decodes to [height, width, 3] uint8 RGB: grey replicated, alpha dropped, GIF's first frame.

    16-bit samples keep their high byte. EXIF orientation is not applied, as in the original: boxes
    are relative to the stored image. Raises tf.errors.InvalidArgumentError for other bytes.

    Args:
        encoded: [] string.
    """
    image = tf.io.decode_image(encoded, channels=3, expand_animations=False)
    image.set_shape([None, None, 3])
    return image


def kind_of(encoded: bytes) -> str:
    """Names what these bytes are, for a message: ``JPEG``, ``HTML or XML`` ..."""
    if not encoded:
        return "empty"
    for magic, kind in _KINDS:
        if encoded.startswith(magic):
            return kind
    return f"unknown (begins with {encoded[:8]!r})"


def stored_jpeg_size(encoded: bytes) -> StoredSize | None:
    """Reads a JPEG's header; None when the bytes are no JPEG or end before its size."""
    orientation = 1
    for marker, body in _segments(encoded):
        if marker == _APP1 and body.startswith(b"Exif\0\0"):
            orientation = _orientation(body[6:])
        if marker in _START_OF_FRAME and len(body) >= 5:
            height, width = struct.unpack(">HH", body[1:5])
            return StoredSize(height, width, turned=orientation in _TURNED_ORIENTATIONS)
    return None


def _segments(encoded: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields (marker, body) up to the scan."""
    position = 2 if encoded.startswith(b"\xff\xd8\xff") else len(encoded)
    while position + 4 <= len(encoded) and encoded[position] == 0xFF:
        marker, length = struct.unpack(">xBH", encoded[position : position + 4])
        if marker == _START_OF_SCAN or length < 2:
            return
        yield marker, encoded[position + 4 : position + 2 + length]
        position += 2 + length


def _orientation(tiff: bytes) -> int:
    """The orientation tag of an EXIF block's first directory; 1 (upright) when there is none."""
    order = {b"II": "<", b"MM": ">"}.get(tiff[:2])
    if order is None or len(tiff) < 8:
        return 1
    directory = struct.unpack(f"{order}I", tiff[4:8])[0]
    num_entries = int.from_bytes(
        tiff[directory : directory + 2], "big" if order == ">" else "little"
    )
    for number in range(num_entries):
        entry = tiff[directory + 2 + 12 * number :][:12]
        if len(entry) == 12 and struct.unpack(f"{order}H", entry[:2])[0] == _EXIF_ORIENTATION_TAG:
            return int(struct.unpack(f"{order}H", entry[8:10])[0])
    return 1
