import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.checkpoints.attempts import Attempt, AttemptEnd, Outcome
from tandem.checkpoints.checksums import crc32c_of
from tandem.checkpoints.commits import Commit, CommittedFile
from tandem.checkpoints.ledger import LedgerEntry
from tandem.checkpoints.names import CheckpointId
from tandem.checkpoints.records import decode, encode
from tandem.errors import RunConflictError, StoreError, TandemError
from tests.checkpoints.actors import entry

NAME = "checkpoints/ckpt-7-1.commit.json"
COMMIT = Commit(
    nonce="n1",
    checkpoint=CheckpointId(7, 1),
    files=(CommittedFile(suffix=".index", size=3, crc32c=5, generation="g"),),
    config_digest="c0",
    samples_seen=56,
    training_seconds=1.25,
    committed_at="2026-01-31T12:00:00Z",
)


def _with(**changes):
    payload = json.loads(encode(COMMIT)) | changes
    del payload["checksum"]

    def laid_out(content):
        return json.dumps(content, sort_keys=True, indent=1).encode() + b"\n"

    return laid_out(payload | {"checksum": f"crc32c:{crc32c_of(laid_out(payload)):08x}"})


def test_a_record_reads_back_as_it_was_written():
    assert decode(encode(COMMIT), Commit, name=NAME) == COMMIT


def test_the_same_record_is_always_the_same_bytes():
    assert encode(COMMIT) == encode(decode(encode(COMMIT), Commit, name=NAME)) == _with()


def test_every_flipped_bit_of_a_record_is_detected():
    data = encode(COMMIT)
    for position in range(len(data) * 8):
        flipped = bytearray(data)
        flipped[position // 8] ^= 1 << position % 8
        with pytest.raises(StoreError, match="damaged"):
            decode(bytes(flipped), Commit, name=NAME)


def test_every_cut_of_a_record_is_detected():
    data = encode(COMMIT)
    for length in range(len(data)):
        with pytest.raises(StoreError, match=NAME):
            decode(data[:length], Commit, name=NAME)


def test_a_record_of_a_newer_schema_is_refused_with_advice():
    with pytest.raises(RunConflictError, match=r"newer version of Tandem \(schema 2"):
        decode(_with(schema=2, field_to_come=1), Commit, name=NAME)


def test_an_unknown_field_of_this_schema_is_refused():
    with pytest.raises(StoreError, match="unheard_of"):
        decode(_with(unheard_of=1), Commit, name=NAME)


def test_a_record_of_another_kind_is_refused():
    with pytest.raises(StoreError, match="'commit', not 'evaluation'"):
        decode(encode(COMMIT), LedgerEntry, name=NAME)


@pytest.mark.parametrize("data", [b"", b"\xff", b"[]\n", b"{}\n", b"null\n"])
def test_what_is_no_record_at_all_is_damaged(data):
    with pytest.raises(StoreError, match=NAME):
        decode(data, Commit, name=NAME)


@given(st.binary(max_size=300))
def test_any_bytes_are_answered_with_an_error_of_ours(data):
    with pytest.raises(TandemError):
        decode(data, Commit, name=NAME)


@given(
    st.dictionaries(
        st.text(), st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False))
    )
)
def test_metrics_read_back_to_the_last_bit(metrics):
    record = entry(CheckpointId(1, 1)).model_copy(update={"metrics": metrics})
    assert decode(encode(record), LedgerEntry, name="x").metrics == metrics


def test_a_metric_that_is_not_a_number_is_refused():
    with pytest.raises(ValueError, match="finite"):
        entry(CheckpointId(1, 1), metric=float("nan"))


def test_enums_and_checkpoint_ids_are_written_as_words():
    end = AttemptEnd(
        nonce="n", number=2, outcome=Outcome.FINISHED, reason="", final_step=7, ended_at="now"
    )
    assert b'"outcome": "finished"' in encode(end)
    attempt = Attempt(
        nonce="n",
        number=2,
        resumed_from=CheckpointId(7, 1),
        owner="o",
        holder="h",
        image="i",
        config_digest="d",
        config_text="ä",
        config_diff=("a: 1 -> 2",),
        claimed_at="now",
    )
    assert b'"resumed_from": "7-1"' in encode(attempt)
    assert decode(encode(attempt), Attempt, name="x") == attempt
