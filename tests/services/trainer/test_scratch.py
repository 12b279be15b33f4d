"""Where files under way are kept."""

import errno
import tempfile
from pathlib import Path

import pytest

from services.trainer.scratch import (
    check_scratch,
    files_under_way,
    remove_if_empty,
    remove_leftovers,
    scratch_folder,
    scratch_prefix,
    system_errors_translated,
)
from tandem.checkpoints.local import LocalStore
from tandem.errors import ConfigError, StoreError, StoreUnavailableError
from tests.checkpoints.memory_store import MemoryStore


class Bucket(MemoryStore):
    def __init__(self, location):
        super().__init__()
        self.location = location


def test_a_local_run_keeps_them_in_itself_unless_told_otherwise(tmp_path):
    store = LocalStore(tmp_path / "run")
    assert scratch_folder(store, None) == tmp_path / "run"
    assert scratch_folder(store, str(tmp_path / "fast")).parent == tmp_path / "fast"


def test_a_run_in_a_bucket_has_a_folder_of_its_own_in_the_systems_temporary_one():
    one, other = (scratch_folder(Bucket(f"gs://bucket/{name}"), None) for name in "ab")
    assert one.parent == other.parent == Path(tempfile.gettempdir())
    assert one != other
    assert scratch_folder(Bucket("gs://bucket/a"), None) == one


@pytest.mark.parametrize("stated", ["gs://bucket/scratch", "~nobody-of-that-name/scratch"])
def test_what_is_no_folder_of_this_machine_is_refused(tmp_path, stated):
    with pytest.raises(ConfigError, match="scratch folder '"):
        scratch_folder(LocalStore(tmp_path / "run"), stated)


def test_a_folder_that_can_not_be_written_to_is_refused_naming_the_flag(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="--scratch-dir"):
        check_scratch(tmp_path / "file" / "folder")


def test_files_under_way_of_killed_attempts_are_removed_and_no_others(tmp_path):
    for attempt in (1, 2, 3):
        (tmp_path / f"{scratch_prefix(attempt)}x").mkdir()
    remove_leftovers(tmp_path, 3)
    assert [path.name for path in tmp_path.iterdir()] == [f"{scratch_prefix(3)}x"]


def test_nothing_is_left_of_files_under_way(tmp_path):
    def write_and_fail():
        with files_under_way(tmp_path, 1) as folder:
            (folder / "ckpt.index").touch()
            raise KeyError

    with pytest.raises(KeyError):
        write_and_fail()
    assert list(tmp_path.iterdir()) == []


def test_the_folder_goes_with_the_last_process_and_is_made_anew_for_files(tmp_path):
    scratch = tmp_path / "tandem-1"
    with files_under_way(scratch, 1):
        remove_if_empty(scratch)
        assert scratch.is_dir()
    remove_if_empty(scratch)
    assert not scratch.exists()
    with files_under_way(scratch, 2) as folder:
        assert folder.is_dir()


@pytest.mark.parametrize(
    ("number", "kind"), [(errno.ENOSPC, StoreUnavailableError), (errno.EROFS, StoreError)]
)
def test_a_full_disk_may_be_tried_again_and_a_read_only_one_not(number, kind):
    with pytest.raises(StoreError, match="files under way") as caught, system_errors_translated():
        raise OSError(number, "no")
    assert type(caught.value) is kind
