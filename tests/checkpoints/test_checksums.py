import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.checkpoints.checksums import (
    HASHED_BYTES,
    PIECE_BYTES,
    Summing,
    summary_of,
    summary_of_file,
)


def test_the_crc32c_is_that_of_castagnoli():
    # Check values of RFC 3720, appendix B.4.
    assert summary_of(bytes(32)).crc32c == 0x8A9136AA
    assert summary_of(b"\xff" * 32).crc32c == 0x62A8AB43
    assert summary_of(bytes(range(32))).crc32c == 0x46DD794E


@given(st.binary(max_size=50), st.binary(max_size=50))
def test_pieces_add_up_to_the_whole(one, other):
    summing = Summing()
    summing.add(one)
    summing.add(other)
    assert summing.summary() == summary_of(one + other)


@pytest.mark.parametrize("size", [0, 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES + 7])
def test_a_file_and_its_bytes_have_the_same_summary(size):
    data = b"0123456" * (size // 7) + b"x" * (size % 7)
    summary = summary_of(data)
    assert summary_of_file(io.BytesIO(data)) == summary
    assert summary.size == size


def test_other_bytes_have_another_content_hash_up_to_the_size_of_any_record():
    data = bytearray(HASHED_BYTES)
    before = summary_of(bytes(data)).content_hash
    data[500] ^= 1
    assert before != summary_of(bytes(data)).content_hash != ""
    assert summary_of(bytes(data) + b"0").content_hash == ""
