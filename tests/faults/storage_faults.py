"""Faults 1 to 5, 14 and 15: the storage refuses, is gone, is slow, is full, or changes a bit."""

import contextlib
import signal
import subprocess

from services.exits import Exit
from tandem.checkpoints import names
from tests.faults.scenes import CannotError

_SMALL = "96m"
_CHUNK = bytes(1 << 20)


def refused(scene):
    scene.begin()
    scene.place.begin([{"match": "", "times": None, "status": 403}])
    scene.pause(5)
    scene.answer()


def bucket_missing(scene):
    scene.arguments = ("gs://no-such-bucket/run",)
    scene.expect_exit(scene.start_trainer(run="gs://no-such-bucket/run"), Exit.BAD_INPUT)
    scene.answer()


def unavailable(scene):
    scene.begin()
    scene.place.begin([{"match": "", "times": None, "status": 503}])
    scene.pause(60)
    scene.answer()


def slow(scene):
    scene.begin()
    scene.place.begin([{"match": "", "times": None, "delay": 5.0}])
    scene.pause(15)
    scene.answer()


def disk_full(scene):
    """The folder for files under way of a run in a bucket, as a pod has one."""
    with small_disk(scene.folder / "scratch") as scratch:
        scene.begin("--scratch-dir", scratch)
        fill(scratch)
        scene.until(
            lambda: (
                (scene.beat("trainer").facts.get("save_failures") or 0) >= 1
                or scene.trainer.exit_code is not None
            ),
            "a save that fails",
        )
        scene.answer()
        scene.end()


def flipped_bit_in_a_checkpoint(scene):
    """In the newest one, while the evaluator stands still."""
    scene.begin()
    scene.evaluator.send(signal.SIGSTOP)
    newest = scene.wait_for_checkpoint(after=scene.line().newest)
    data = names.checkpoint_object(newest, ".data-00000-of-00001")
    flip_bit(scene, data)
    scene.evaluator.send(signal.SIGCONT)
    scene.until(lambda: newest in scene.line().damaged, "its quarantine")
    scene.answer()


def flipped_bit_in_an_entry(scene):
    scene.begin()
    *_, entry = (
        name
        for name in scene.store.list(names.EVALUATIONS)
        if (parsed := names.parse_entry(name)) and parsed.try_number is None
    )
    flip_bit(scene, entry)
    scene.answer()


def flip_bit(scene, name):
    """One in the middle of a file, past the store and its locks."""
    path = scene.store.local_path(name)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@contextlib.contextmanager
def small_disk(folder):
    """A file system with little room, mounted at a new folder."""
    folder.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={_SMALL}", "tmpfs", folder]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotError(f"needs root, to mount a small disk: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        # Lazily, as a process may be on its way out of it.
        subprocess.run(["umount", "--lazy", folder], check=True)


def fill(folder):
    """Leaves no room in a folder's file system."""
    with (folder / "others").open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(_CHUNK):
            pass
    with (folder / "more").open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(b"x" * 4096):
            pass
