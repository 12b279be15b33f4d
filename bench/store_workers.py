"""The measurements of `bench.store`, each in a process of its own, which prints one JSON object.

TensorFlow's number of threads can't be changed once it has begun, and a signal wants a process.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import tensorflow as tf
from google.auth.credentials import AnonymousCredentials
from google.cloud import storage

from bench.store_training import STEPS_AFTER, Training, flush, save_blocking, saving
from services.signals import StopRequest
from services.trainer.background import SWITCH_SECONDS
from tandem.checkpoints.gcs import GcsStore
from tandem.checkpoints.local import LocalStore

_FOREVER = 1e6
_WARM_UP = 4  # saves, until the system gives files pages that were used before


def main() -> None:
    sys.setswitchinterval(SWITCH_SECONDS)  # as the trainer does
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("measurement", choices=["lost", "local", "bucket", "upload", "stop"])
    parser.add_argument("--mb", type=float, required=True)
    parser.add_argument("--threads", type=int, default=0, help="of a step; 0 takes all cores")
    parser.add_argument("--step-seconds", type=float, default=0.1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--url", help="of a fake GCS")
    parser.add_argument("--bucket")
    parser.add_argument("--save-first", action="store_true", help="a save is under way at the stop")
    options = parser.parse_args()
    if options.threads:
        tf.config.threading.set_intra_op_parallelism_threads(options.threads)
        tf.config.threading.set_inter_op_parallelism_threads(1)
    measure = {
        "lost": _lost,
        "local": _local,
        "bucket": _bucket,
        "upload": _upload,
        "stop": _stop,
    }
    with tempfile.TemporaryDirectory(prefix="bench-store-", dir=".") as folder:
        result = measure[options.measurement](options, Path(folder).absolute())
    print(json.dumps(result), flush=True)


def _lost(options: argparse.Namespace, folder: Path) -> dict[str, list[float]]:
    """Seconds that a save and the steps after it take longer than as many steps without one.

    The machine's other work comes and goes: each save is compared with the steps just before and
    just after it.
    """
    training = Training(options.mb, step_seconds=options.step_seconds)
    store = LocalStore(folder / "run")
    blocking = folder / "blocking"
    blocking.mkdir()
    found: dict[str, list[float]] = {"none": [], "ours": [], "blocking": [], "stall": []}
    with saving(training, store, folder / "run", stop=StopRequest(), deadline=60) as parts:
        saver, background, _ = parts

        def ours() -> None:
            began = time.perf_counter()
            saver.save()
            found["stall"].append(time.perf_counter() - began)

        def window(save: Callable[[], object]) -> float:
            training.steps(2)
            began = time.perf_counter()
            save()
            training.steps(STEPS_AFTER)
            seconds = time.perf_counter() - began
            background.wait_until_idle(_FOREVER)
            for path in blocking.iterdir():
                path.unlink()
            return seconds

        found["none"].append(window(lambda: None))
        for number in range(options.rounds + 1):
            for variant in _rotated(["ours", "blocking"], number):
                save = ours if variant == "ours" else lambda: save_blocking(training, blocking)
                seconds = window(save)
                found["none"].append(window(lambda: None))
                found[variant].append(seconds - sum(found["none"][-2:]) / 2)
    return {name: values[1:] for name, values in found.items()}  # the first one warms up


def _local(options: argparse.Namespace, folder: Path) -> dict[str, list[float]]:
    """Seconds from save to commit on this disk, and of a copy of the same files with fsync."""
    training = Training(options.mb, step_seconds=0.01)
    (folder / "source").mkdir()
    source = save_blocking(training, folder / "source")

    copies: deque[Path] = deque()

    def copy() -> None:
        target = Path(tempfile.mkdtemp(prefix="copy-", dir=folder))
        for path in source:
            flush(Path(shutil.copyfile(path, target / path.name)))
        flush(target)
        copies.append(target)

    def remove_older() -> None:
        while len(copies) > 1:
            shutil.rmtree(copies.popleft())

    return _against(
        training, LocalStore(folder / "run"), folder, options.rounds, copy, remove_older
    )


def _bucket(options: argparse.Namespace, folder: Path) -> dict[str, list[float]]:
    """Seconds from save to commit in a bucket, and of Google's own upload of the same files."""
    training = Training(options.mb, step_seconds=0.01)
    (folder / "source").mkdir()
    source = save_blocking(training, folder / "source")
    with _client(options.url) as client:
        bucket = client.bucket(options.bucket)

        def upload() -> None:
            for path in source:
                bucket.blob(f"plain/{path.name}").upload_from_filename(path)

        def remove() -> None:
            for path in source:
                bucket.blob(f"plain/{path.name}").delete()

        store = GcsStore(options.bucket, "saves", client=client)
        return _against(training, store, folder, options.rounds, upload, remove)


def _upload(options: argparse.Namespace, folder: Path) -> dict[str, list[float]]:
    """Seconds of Google's own upload of that many bytes, each time as another object."""
    path = folder / "object"
    path.write_bytes(os.urandom(int(options.mb * 1e6)))
    seconds = []
    with _client(options.url) as client:
        for number in range(options.rounds):
            blob = client.bucket(options.bucket).blob(f"plain-{number}")
            began = time.monotonic()
            blob.upload_from_filename(path)
            seconds.append(time.monotonic() - began)
            blob.delete()
    return {"plain": seconds}


def _against(
    training: Training,
    store: LocalStore | GcsStore,
    folder: Path,
    rounds: int,
    plain: Callable[[], None],
    clean_up: Callable[[], None],
) -> dict[str, list[float]]:
    seconds: dict[str, list[float]] = {"plain": [], "files": [], "ours": [], "done": []}
    scratch = folder / "run"
    blocking = folder / "blocking"
    blocking.mkdir()
    with saving(training, store, scratch, stop=StopRequest(), deadline=60) as parts:
        saver, background, metrics = parts
        for _ in range(_WARM_UP + rounds):
            training.step()
            began = time.monotonic()
            saver.save()
            background.wait_until_idle(_FOREVER)
            seconds["ours"].append(metrics.committed_at[training.state.step] - began)
            seconds["done"].append(time.monotonic() - began)
            began = time.monotonic()
            plain()
            seconds["plain"].append(time.monotonic() - began)
            clean_up()
            began = time.monotonic()
            files = save_blocking(training, blocking)
            seconds["files"].append(time.monotonic() - began)
            for path in files:
                path.unlink()
    return {name: values[_WARM_UP:] for name, values in seconds.items()}


def _stop(options: argparse.Namespace, folder: Path) -> dict[str, float]:
    """When the last state was committed after a signal that the parent sends."""
    stop = StopRequest()
    stop.install()
    training = Training(options.mb, step_seconds=options.step_seconds)
    with _client(options.url) as client:
        store = GcsStore(options.bucket, f"stop-{os.getpid()}", client=client)
        with saving(training, store, folder / "scratch", stop=stop, deadline=60) as parts:
            saver, _, metrics = parts
            training.steps(3)
            if options.save_first:
                saver.save()
            print("ready", flush=True)
            while not stop():
                training.step()
            asked_at = stop.asked_at or 0.0
            finished_step = time.monotonic()
            saver.finish()
            committed_at = metrics.committed_at[training.state.step]
            return {
                "asked_at": asked_at,
                "step_finished_at": finished_step,
                "committed_at": committed_at,
                "done_at": time.monotonic(),
                "saves": len(metrics.committed_at),
            }


@contextmanager
def _client(url: str) -> Iterator[storage.Client]:
    client = storage.Client(
        project="bench",
        credentials=AnonymousCredentials(),
        client_options={"api_endpoint": url},
    )
    with closing(client):
        yield client


def _rotated(variants: list[str], number: int) -> list[str]:
    """Another one comes first each time."""
    first = number % len(variants)
    return variants[first:] + variants[:first]


if __name__ == "__main__":
    sys.exit(main())
