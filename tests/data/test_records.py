import pytest

from tandem.data.records import open_records, resolve_paths
from tandem.errors import DataError


@pytest.fixture
def shards(write_records):
    counts = {"b-00001-of-00002": 3, "b-00000-of-00002": 2, "a": 4}
    return {
        name: write_records([f"{name}{i}".encode() for i in range(count)], name=name)
        for name, count in counts.items()
    }


def test_globs_are_sorted_and_keep_their_place_in_the_list(shards, tmp_path):
    paths = resolve_paths([str(tmp_path / "b-?????-of-00002"), shards["a"]])

    assert list(paths) == [shards["b-00000-of-00002"], shards["b-00001-of-00002"], shards["a"]]


def test_ids_name_the_file_and_count_within_it(shards, tmp_path):
    records = open_records([str(tmp_path / "b-*")])

    stored = list(records.read())
    assert [(s.record.split("/")[-1], s.serialized) for s in stored] == [
        ("b-00000-of-00002:0", b"b-00000-of-000020"),
        ("b-00000-of-00002:1", b"b-00000-of-000021"),
        ("b-00001-of-00002:0", b"b-00001-of-000020"),
        ("b-00001-of-00002:1", b"b-00001-of-000021"),
        ("b-00001-of-00002:2", b"b-00001-of-000022"),
    ]
    assert records.num_records == 5
    assert records.first_indices == (0, 2)
    assert records.mean_record_bytes == 17 + 16  # the data and its frame


def test_one_of_n_counts_over_all_files(shards, tmp_path):
    records = open_records([str(tmp_path / "b-*"), shards["a"]], one_of_n=4)

    assert records.num_records == 3
    assert [s.record.split("/")[-1] for s in records.read()] == [
        "b-00000-of-00002:0",
        "b-00001-of-00002:2",
        "a:3",
    ]


def test_a_name_with_a_bracket_is_no_glob_when_it_exists(write_records):
    path = write_records([b"x"], name="odd[1].record")

    assert resolve_paths([path]) == (path,)


@pytest.mark.parametrize(
    ("patterns", "message"),
    [
        ([], "no input_path"),
        (["{tmp}/nothing-*"], "as a glob it matches none"),
        (["{tmp}/missing.record"], "no such file"),
        (["{tmp}/a", "{tmp}/*"], "more than once"),
        (["{tmp}"], "is a folder"),
    ],
)
def test_a_wrong_input_path_is_refused(shards, tmp_path, patterns, message):
    with pytest.raises(DataError, match=message):
        open_records([pattern.format(tmp=tmp_path) for pattern in patterns])
