import pytest
import tensorflow as tf

from tandem.data.records import open_records
from tandem.data.streams import ReadOptions, evaluation_stream, training_stream

COUNTS = (3, 4, 5)


@pytest.fixture
def records(write_records):
    paths = [
        write_records([f"{shard}-{i}".encode() for i in range(count)], name=f"s{shard}")
        for shard, count in enumerate(COUNTS)
    ]
    return open_records(paths)


def contents(stream, count=None):
    taken = stream if count is None else stream.take(count)
    return [serialized.decode() for _, serialized in taken.as_numpy_iterator()]


def in_order():
    return [f"{shard}-{i}" for shard, count in enumerate(COUNTS) for i in range(count)]


def test_evaluation_reads_each_record_once_in_order_with_its_id(records):
    elements = list(evaluation_stream(records).as_numpy_iterator())

    assert [serialized.decode() for _, serialized in elements] == in_order()
    assert elements[4][0].decode() == f"{records.files[1].path}:1"
    assert contents(evaluation_stream(records, first_example=7)) == in_order()[7:]


@pytest.mark.parametrize("num_readers", [1, 2, 64])
@pytest.mark.parametrize("shuffle", [True, False])
def test_every_epoch_has_each_record_once_whatever_the_number_of_readers(
    records, num_readers, shuffle
):
    options = ReadOptions(num_readers=num_readers, read_block_length=2, shuffle=shuffle)

    drawn = contents(training_stream(records, options=options, seed=1), 36)

    for epoch in range(3):
        assert sorted(drawn[12 * epoch : 12 * epoch + 12]) == in_order()


def test_epochs_and_seeds_differ_and_the_same_seed_repeats(records):
    def draw(seed):
        return contents(training_stream(records, options=ReadOptions(), seed=seed), 24)

    first = draw(1)
    assert first[:12] != first[12:]
    assert first == draw(1)
    assert first != draw(2)


@pytest.mark.parametrize("first_example", [0, 5, 12, 31])
def test_a_stream_can_begin_anywhere(records, first_example):
    options = ReadOptions(shuffle_buffer_size=4)
    whole = contents(training_stream(records, options=options, seed=1), 40)

    rest = training_stream(records, options=options, seed=1, first_example=first_example)

    assert contents(rest, 40 - first_example) == whole[first_example:]


@pytest.mark.parametrize("global_seed", [0, 3])
def test_the_global_seed_changes_nothing(records, global_seed):
    before = contents(training_stream(records, options=ReadOptions(), seed=1), 24)
    try:
        tf.random.set_seed(global_seed)
        assert contents(training_stream(records, options=ReadOptions(), seed=1), 24) == before
    finally:
        tf.random.set_seed(None)


def test_without_shuffling_one_reader_keeps_the_order(records):
    options = ReadOptions(shuffle=False, num_readers=1)

    assert contents(training_stream(records, options=options, seed=1), 24) == in_order() * 2


def test_a_number_of_epochs_ends_the_stream(records):
    options = ReadOptions(num_epochs=2)

    assert len(contents(training_stream(records, options=options, seed=1))) == 24
    assert len(contents(training_stream(records, options=options, seed=1, first_example=20))) == 4
    assert contents(training_stream(records, options=options, seed=1, first_example=24)) == []


def test_one_of_n_takes_the_same_records_every_epoch(records):
    sparse = open_records([file.path for file in records.files], one_of_n=5)

    assert contents(evaluation_stream(sparse)) == ["0-0", "1-2", "2-3"]
    drawn = contents(training_stream(sparse, options=ReadOptions(), seed=1), 6)
    assert sorted(drawn[:3]) == sorted(drawn[3:]) == ["0-0", "1-2", "2-3"]
