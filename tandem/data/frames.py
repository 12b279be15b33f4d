"""The TFRecord container: where records begin, whether they're whole, what a bad file really is.

A record is a little-endian uint64 length, the masked CRC32C of those eight bytes, the data, and the
data's masked CRC32C. Reading the lengths alone is enough to count records (`count_records`), and
costs two system calls a record; reading everything (`read_records`) also proves that no byte has
changed. TensorFlow reads the records while training; its errors say neither which file nor which
record, so this module finds that out afterwards.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple, cast

import google_crc32c
import tensorflow as tf

from tandem.errors import DataError

HEADER_BYTES = 12
FOOTER_BYTES = 4

_HEADER = struct.Struct("<QI")
_CRC = struct.Struct("<I")
_MASK_DELTA = 0xA282EAD8  # from the TFRecord format
_UINT32 = 0xFFFFFFFF
_CRLF_PROBE_BYTES = 1 << 20
_CRLF_EXPECTED_BYTES = 1 << 19  # CR LF is absent by chance in this much compressed data: e^-8


class Frame(NamedTuple):
    """One record of a file."""

    number: int
    offset: int
    data: bytes


def masked_crc(data: bytes) -> int:
    """The CRC32C of `data` as TFRecord files store it."""
    crc = google_crc32c.value(data)
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & _UINT32


def count_records(path: str) -> int:
    """Counts the records of a file by their lengths, without reading their data.

    Raises:
        DataError: the file can't be read, is empty, isn't a TFRecord file, or ends inside a record.
    """
    size = file_size(path)
    if size == 0:
        raise DataError(f"{path}: the file is empty (0 bytes); expected TFRecords of tf.Example")
    count = offset = 0
    with _open(path) as file:
        while offset < size:
            file.seek(offset)
            length = _length(file.read(HEADER_BYTES))
            end = size + 1 if length is None else offset + HEADER_BYTES + length + FOOTER_BYTES
            if end > size:
                _read_all(path)  # a record before this one may be the damaged one
                raise _damage(path, offset=offset, readable=count, what="the record is not whole")
            offset = end
            count += 1
    return count


def read_records(path: str) -> Iterator[Frame]:
    """Yields the records of a file, each proved by its checksum.

    Raises:
        DataError: naming the byte offset of the first damaged record and how many precede it.
    """
    index = offset = 0
    with _open(path, buffering=1 << 20) as file:
        while header := file.read(HEADER_BYTES):
            length = _length(header)
            if length is None:
                what = "the checksum of the record's length is wrong"
                raise _damage(path, offset=offset, readable=index, what=what)
            data = file.read(length) if length <= file_size(path) - offset else b""
            footer = file.read(FOOTER_BYTES)
            if len(data) < length or len(footer) < FOOTER_BYTES:
                what = "the file ends inside the record"
                raise _damage(path, offset=offset, readable=index, what=what)
            if _CRC.unpack(footer)[0] != masked_crc(data):
                what = "the checksum of the record's data is wrong"
                raise _damage(path, offset=offset, readable=index, what=what)
            yield Frame(index, offset, data)
            index += 1
            offset += HEADER_BYTES + length + FOOTER_BYTES


def read_record(path: str, index: int) -> bytes:
    """The data of one record; IndexError when the file has fewer."""
    for frame in read_records(path):
        if frame.number == index:
            return frame.data
    raise IndexError(f"{path} has no record {index}")


def file_size(path: str) -> int:
    """Size in bytes.

    Raises:
        DataError: there is no such file.
    """
    try:
        return int(tf.io.gfile.stat(path).length)
    except tf.errors.OpError as error:
        raise DataError(f"{path}: can't be read ({error.message})") from error


def _open(path: str, *, buffering: int = 0) -> BinaryIO:
    # TensorFlow's own file object reads half a MiB per seek, so it's for paths Python can't open.
    if "://" in path:
        return cast("BinaryIO", tf.io.gfile.GFile(path, "rb"))
    return open(path, "rb", buffering=buffering)


def _length(header: bytes) -> int | None:
    if len(header) < HEADER_BYTES:
        return None
    length, crc = _HEADER.unpack(header)
    return int(length) if crc == masked_crc(header[:8]) else None


def _read_all(path: str) -> None:
    for _ in read_records(path):
        pass


def _damage(path: str, *, offset: int, readable: int, what: str) -> DataError:
    with _open(path) as file:
        beginning = file.read(_CRLF_PROBE_BYTES) or b""
    kind = _other_kind(beginning[:64]) if offset == 0 else ""
    if kind:
        return DataError(f"{path}: {kind}; expected uncompressed TFRecords of tf.Example")
    hint = ""
    if len(beginning) >= _CRLF_EXPECTED_BYTES and b"\r\n" not in beginning:
        hint = (
            ". It has no CR LF byte pair at all, as after a Git checkout that converts line ends: "
            "mark it `-text` in .gitattributes and fetch it again"
        )
    return DataError(
        f"{path}: damaged at byte {offset} ({what}); "
        f"{readable} of at least {readable + 1} records are readable{hint}"
    )


def _other_kind(beginning: bytes) -> str:
    """What a file that begins like this is, when it's no TFRecord file; empty when unknown."""
    kinds = (
        (b"\x1f\x8b", "the file is GZIP-compressed (decompress it with gunzip)"),
        (b"PK\x03\x04", "this is a ZIP archive"),
        (b"version https://git-lfs", "this is a Git LFS pointer (run `git lfs pull`)"),
        (b"\xff\xd8\xff", "this is a JPEG image"),
        (b"\x89PNG", "this is a PNG image"),
    )
    for magic, kind in kinds:
        if beginning.startswith(magic):
            return kind
    if beginning[:1] == b"\x78" and int.from_bytes(beginning[:2], "big") % 31 == 0:
        return "the file is ZLIB-compressed"
    printable = all(byte in b"\t\n\r\x1b" or 32 <= byte < 127 for byte in beginning)
    return "this is a text file" if beginning and printable else ""
