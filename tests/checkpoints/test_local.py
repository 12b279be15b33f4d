import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tandem.checkpoints.local import LocalStore
from tandem.checkpoints.local_files import locked
from tandem.errors import ObjectNotFoundError, StoreError

ROOT = Path(__file__).resolve().parents[2]


def _start(script, *args):
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, args)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )


RACER = """
import sys, time
from pathlib import Path
from tandem.checkpoints.local import LocalStore
from tandem.errors import ObjectExistsError
root, index, start = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
store = LocalStore(root)
print("ready", flush=True)
while not start.exists():
    time.sleep(0.001)
for number in range(20):
    try:
        store.create(f"attempts/{number:04d}.json", index.encode() * 1000)
        print(number, flush=True)
    except ObjectExistsError:
        pass
"""


def test_of_twelve_racing_processes_one_wins_each_name(tmp_path):
    start = tmp_path / "start"
    racers = [_start(RACER, tmp_path / "run", index, start) for index in range(12)]
    for racer in racers:
        assert racer.stdout.readline() == "ready\n"
    start.touch()
    won = [racer.communicate(timeout=60)[0].split() for racer in racers]
    assert sorted(int(number) for numbers in won for number in numbers) == list(range(20))
    store = LocalStore(tmp_path / "run")
    for index, numbers in enumerate(won):
        for number in numbers:
            data = store.get(f"attempts/{int(number):04d}.json").data
            assert data == str(index).encode() * 1000


COUNTER = """
import sys
from pathlib import Path
from tandem.checkpoints.local import LocalStore
from tandem.errors import GenerationMismatchError
store = LocalStore(Path(sys.argv[1]))
done = 0
while done < 25:
    stored = store.get("best/count.json")
    number = int(stored.data) + 1
    try:
        store.replace("best/count.json", b"%d" % number, generation=stored.stat.generation)
        done += 1
    except GenerationMismatchError:
        pass
"""


def test_processes_that_count_by_replacing_lose_no_count(tmp_path):
    store = LocalStore(tmp_path / "run")
    store.create("best/count.json", b"0")
    counters = [_start(COUNTER, tmp_path / "run") for _ in range(4)]
    for counter in counters:
        counter.communicate(timeout=120)
        assert counter.returncode == 0
    assert store.get("best/count.json").data == b"100"


WRITER = """
import sys
from pathlib import Path
from tandem.checkpoints.local import LocalStore
store = LocalStore(Path(sys.argv[1]))
generation = None
for number in range(int(sys.argv[2]), 10**6):
    store.create(f"checkpoints/{number}", b"%07d" % number * 500_000)
    generation = store.replace(f"best/{sys.argv[2]}", b"%07d" % number * 100_000,
                               generation=generation).generation
    print(number, flush=True)
"""


def test_a_writer_killed_in_mid_put_leaves_whole_objects_only(tmp_path):
    for round_number, delay in enumerate([0.003, 0.01, 0.02, 0.035, 0.05]):
        first = round_number * 1000
        writer = _start(WRITER, tmp_path / "run", first)
        assert writer.stdout.readline() == f"{first}\n"
        time.sleep(delay)
        writer.send_signal(signal.SIGKILL)
        reported, _ = writer.communicate(timeout=60)
        store = LocalStore(tmp_path / "run")
        for name in store.list("checkpoints/"):
            number = int(name.rpartition("/")[2])
            assert store.get(name).data == b"%07d" % number * 500_000
        for number in map(int, reported.split()):
            assert f"checkpoints/{number}" in store.list("checkpoints/")
        data = store.get(f"best/{first}").data
        assert len(data) == 700_000
        assert data == data[:7] * 100_000


def test_temporary_files_of_killed_writers_are_swept_and_those_of_living_ones_stay(tmp_path):
    killed = tmp_path / "run" / ".store" / "dead.tmp"
    killed.parent.mkdir(parents=True)
    killed.write_bytes(b"half")
    holder = _start(
        "import sys, time\n"
        "from pathlib import Path\n"
        "from tandem.checkpoints.local_files import temporary_file\n"
        "with temporary_file(Path(sys.argv[1]), nonce=lambda: 'living'):\n"
        "    print('ready', flush=True)\n"
        "    time.sleep(60)\n",
        killed.parent,
    )
    try:
        assert holder.stdout.readline() == "ready\n"
        LocalStore(tmp_path / "run").create("run.json", b"{}")
        assert sorted(p.name for p in killed.parent.glob("*.tmp")) == ["living.tmp"]
    finally:
        holder.kill()
        holder.communicate()


def test_nothing_is_written_before_the_first_put(tmp_path):
    store = LocalStore(tmp_path / "run")
    assert store.list("") == []
    with pytest.raises(ObjectNotFoundError):
        store.get("run.json")
    with pytest.raises(ObjectNotFoundError):
        store.delete("run.json", generation="1")
    assert not (tmp_path / "run").exists()


def test_no_temporary_file_stays_behind(tmp_path):
    store = LocalStore(tmp_path / "run")
    stat = store.create("best/val.json", b"1")
    store.replace("best/val.json", b"2", generation=stat.generation)
    assert list((tmp_path / "run" / ".store").glob("*.tmp")) == []


def test_a_file_on_the_same_disk_is_linked_and_not_copied(tmp_path):
    path = tmp_path / "saved.index"
    path.write_bytes(b"abc")
    store = LocalStore(tmp_path / "run")
    store.create_from_file("checkpoints/ckpt-1-1.index", path)
    assert store.local_path("checkpoints/ckpt-1-1.index").samefile(path)


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="needs a second file system")
def test_a_file_on_another_disk_is_copied(tmp_path):
    path = Path("/dev/shm") / f"tandem-test-{os.getpid()}"
    path.write_bytes(b"abc" * 10**6)
    try:
        if path.stat().st_dev == tmp_path.stat().st_dev:
            pytest.skip("/dev/shm and the temporary folder are one file system")
        store = LocalStore(tmp_path / "run")
        stat = store.create_from_file("checkpoints/ckpt-1-1.index", path)
    finally:
        path.unlink()
    assert stat == store.stat("checkpoints/ckpt-1-1.index")
    assert stat.size == 3 * 10**6


@pytest.mark.parametrize("name", ["", "../run.json", "/etc/passwd", "a//b", ".store/x", "a/.b"])
def test_a_name_that_leaves_the_run_folder_is_refused(tmp_path, name):
    with pytest.raises(ValueError, match="no object name"):
        LocalStore(tmp_path / "run").create(name, b"")


def test_other_files_with_a_leading_dot_are_no_objects(tmp_path):
    store = LocalStore(tmp_path / "run")
    store.create("run.json", b"{}")
    (tmp_path / "run" / ".saving").mkdir()
    (tmp_path / "run" / ".saving" / "x.index").write_bytes(b"")
    assert store.list("") == ["run.json"]


def test_an_error_of_the_system_becomes_one_of_the_store_with_the_object_named(tmp_path):
    (tmp_path / "run").write_bytes(b"a file where the folder should be")
    with pytest.raises(StoreError, match=r"run\.json"):
        LocalStore(tmp_path / "run").get("run.json")


def test_a_shared_lock_that_can_not_be_had_is_done_without_and_an_exclusive_one_is_not(tmp_path):
    lock = tmp_path / "missing" / "1.lock"
    with locked(lock, exclusive=False):
        assert not lock.parent.exists()
    with pytest.raises(FileNotFoundError), locked(lock, exclusive=True):
        pass
