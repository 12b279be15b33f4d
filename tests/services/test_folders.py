"""Folders of processes, and what is left of killed ones."""

import subprocess
import sys

from services.folders import own_folder

HOLDER = """
import sys
from pathlib import Path
from services.folders import own_folder
with own_folder(Path(sys.argv[1]), prefix="work-") as folder:
    (folder / "checkpoint").write_bytes(b"large")
    print(folder, flush=True)
    sys.stdin.read()
"""


def start_holder(parent):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(parent)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    process.stdout.readline()
    return process


def end(process):
    process.kill()
    process.communicate()


def test_a_folder_is_gone_at_the_end(tmp_path):
    with own_folder(tmp_path / "new", prefix="work-") as folder:
        (folder / "file").write_bytes(b"1")
    assert list((tmp_path / "new").iterdir()) == []


def test_the_folder_of_a_living_process_stays_and_that_of_a_killed_one_goes(tmp_path):
    living, killed = start_holder(tmp_path), start_holder(tmp_path)
    try:
        assert len(list(tmp_path.iterdir())) == 2
        end(killed)
        with own_folder(tmp_path, prefix="work-") as folder:
            others = [path for path in tmp_path.iterdir() if path != folder]
            assert len(others) == 1
            assert (others[0] / "checkpoint").read_bytes() == b"large"
    finally:
        end(living)


def test_folders_of_other_names_are_left_alone(tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "work-empty").mkdir()
    (tmp_path / "work-unknown").mkdir()
    (tmp_path / "work-unknown" / "file").write_bytes(b"1")
    with own_folder(tmp_path, prefix="work-"):
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "work-unknown"]
