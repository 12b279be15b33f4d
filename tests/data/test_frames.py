import gzip
from pathlib import Path

import pytest
import tensorflow as tf

from tandem.data.frames import count_records, masked_crc, read_record, read_records
from tandem.errors import DataError

FIVE = [bytes([65 + i]) * (10 + i) for i in range(5)]  # frames of 26, 27, 28, 29 and 30 bytes


@pytest.fixture
def five(write_records):
    return write_records(FIVE)


def damage(path, *, offset):
    data = bytearray(Path(path).read_bytes())
    data[offset] ^= 0xFF
    Path(path).write_bytes(data)


def test_records_are_read_as_tensorflow_writes_them(five):
    frames = list(read_records(five))

    assert [frame.data for frame in frames] == FIVE
    assert [frame.offset for frame in frames] == [0, 26, 53, 81, 110]
    assert count_records(five) == 5
    assert read_record(five, 3) == FIVE[3]


def test_a_record_beyond_the_end_is_an_index_error(five):
    with pytest.raises(IndexError, match="no record 5"):
        read_record(five, 5)


def test_the_checksum_is_the_formats():
    # The length 0 of an empty record, as every TFRecord writer stores it.
    assert masked_crc(bytes(8)).to_bytes(4, "little") == bytes.fromhex("29039807")


def test_a_changed_byte_is_located(five):
    damage(five, offset=53 + 12)

    assert count_records(five) == 5  # lengths alone don't show it
    with pytest.raises(DataError, match=r"damaged at byte 53 .*data.* 2 of at least 3 records"):
        list(read_records(five))


def test_a_changed_length_is_located_by_counting_alone(five):
    damage(five, offset=81)

    with pytest.raises(DataError, match=r"damaged at byte 81 .*length.* 3 of at least 4 records"):
        count_records(five)


def test_a_file_cut_within_a_record_says_how_many_are_whole(five):
    Path(five).write_bytes(Path(five).read_bytes()[:95])

    for read in (count_records, lambda path: list(read_records(path))):
        with pytest.raises(DataError, match=r"byte 81 .*ends inside.* 3 of at least 4 records"):
            read(five)


def test_a_file_cut_within_a_header_says_so(five):
    Path(five).write_bytes(Path(five).read_bytes()[:85])

    with pytest.raises(DataError, match="byte 81"):
        count_records(five)


def test_an_empty_file_is_refused(tmp_path):
    (tmp_path / "empty").touch()

    with pytest.raises(DataError, match=r"empty \(0 bytes\)"):
        count_records(str(tmp_path / "empty"))


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(DataError, match="can't be read"):
        count_records(str(tmp_path / "missing"))


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (gzip.compress(b"x" * 50, mtime=0), "GZIP-compressed"),
        (b"\x78\x9c\xab\xa8\xa0\x3d\x00\x00\x0e\x13\x17\x71", "ZLIB-compressed"),
        (b"item {\n  id: 1\n  name: 'cat'\n}\n", "text file"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "Git LFS pointer"),
        (b"PK\x03\x04" + bytes(40), "ZIP archive"),
        (b"\xff\xd8\xff\xe0" + bytes(40), "JPEG image"),
    ],
)
def test_another_kind_of_file_is_named(tmp_path, content, kind):
    path = tmp_path / "other"
    path.write_bytes(content)

    with pytest.raises(DataError, match=f"{kind}.*expected uncompressed TFRecords"):
        count_records(str(path))


def test_a_compressed_tfrecord_file_is_named(tmp_path):
    path = str(tmp_path / "packed")
    with tf.io.TFRecordWriter(path, "GZIP") as writer:
        writer.write(b"x")

    with pytest.raises(DataError, match="GZIP-compressed"):
        count_records(path)


@pytest.mark.parametrize("name", ["pets_examples", "snapshot_serengeti_sequence_examples"])
def test_real_files_that_git_damaged_are_explained(shared, name):
    path = shared / f"realdata/tfrecords/damaged/{name}.autocrlf-damaged.record"

    with pytest.raises(DataError, match=r"damaged at byte 0 .* 0 of at least 1 .*gitattributes"):
        count_records(str(path))


def test_paths_that_python_cannot_open_are_read_through_tensorflow(five):
    assert [frame.data for frame in read_records(f"file://{five}")] == FIVE
    assert count_records(f"file://{five}") == 5
