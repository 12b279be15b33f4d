import os

import pytest

from tandem.config.files import check_path, find_records
from tandem.errors import ConfigError, DataError


@pytest.fixture
def folder(tmp_path):
    for name in ("b.record", "a.record", "odd[1].record", "other.txt"):
        (tmp_path / name).write_bytes(b"x")
    return tmp_path


def test_a_path_is_found_as_it_is(folder):
    path = str(folder / "a.record")
    assert find_records(path, field="f") == (path,)


def test_a_pattern_finds_its_files_in_order(folder):
    found = find_records(str(folder / "?.record"), field="f")
    assert [os.path.basename(p) for p in found] == ["a.record", "b.record"]


def test_a_file_named_like_a_pattern_is_found_by_its_name(folder):
    path = str(folder / "odd[1].record")
    assert find_records(path, field="f") == (path,)


def test_relative_paths_are_looked_up_from_the_working_folder(folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert find_records("a.record", field="f") == ("a.record",)


def test_a_pattern_that_matches_nothing_is_an_error(folder):
    with pytest.raises(DataError, match=r"^f: no file matches '.*val-\*\.record' in /"):
        find_records(str(folder / "val-*.record"), field="f")


def test_a_missing_file_is_an_error(folder):
    with pytest.raises(DataError, match=r"^f: '.*c\.record' doesn't exist \(looked from /"):
        find_records(str(folder / "c.record"), field="f")


def test_an_empty_file_is_an_error(folder):
    (folder / "c.record").touch()
    with pytest.raises(DataError, match=r"c\.record' is empty"):
        find_records(str(folder / "*.record"), field="f")


def test_a_folder_is_an_error_that_says_what_to_name(folder):
    with pytest.raises(DataError, match=r"is a folder; name its files, such as '.*/\*\.record'"):
        find_records(str(folder), field="f")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("", "expected a path, found nothing"),
        ("PATH_TO_BE_CONFIGURED/train.record", "still the placeholder of the sample config"),
        ("PATH_TO_BEE_CONFIGURED/val.record", "still the placeholder"),
        ("gs://bucket/train.record", "isn't a local path"),
    ],
)
def test_what_cannot_be_a_local_file_is_a_config_error(path, expected):
    with pytest.raises(ConfigError, match=f"^f: .*{expected}"):
        check_path(path, field="f")
