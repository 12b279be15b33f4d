"""TensorBoard's event files of a run, wherever the run is.

In a local run folder TensorFlow writes them in place. For a bucket it writes them to a scratch
folder, from which they are put into the run store now and then, by the same client and credentials
as everything else. An object can't grow, so each time the whole file goes: a new file is begun
once one has `_ROTATE_BYTES`, which bounds what that costs.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import re
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import tensorflow as tf
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from tandem.checkpoints import writing
from tandem.checkpoints.objects import ObjectStore
from tandem.errors import GenerationMismatchError, TandemError

_logger = logging.getLogger(__name__)

_FILES = re.compile(r"events\.out\.tfevents\.")
_GRAPH_NODE = re.compile(r"^\{\{.*?\}\} ")
_ROTATE_BYTES = 1 << 20
_CLOSING_SECONDS = 10.0


class EventFolder:
    """A folder of event files; a context, which closes it.

    Args:
        store: the run's.
        folder: the folder's name in it, `train` or `eval_SET`.
        scratch: a folder on this machine, used where the run is a bucket.
        upload_seconds: time between two looks for something to upload; None uploads only in
            `flush`, in the caller's thread.
        closing_seconds: how long the last upload of the thread may take, asked when it begins.
    """

    def __init__(
        self,
        store: ObjectStore,
        folder: str,
        *,
        scratch: Path,
        upload_seconds: float | None = None,
        closing_seconds: Callable[[], float] = lambda: _CLOSING_SECONDS,
    ) -> None:
        here = store.local_path(f"{folder}/events")
        self._is_remote = here is None
        self._folder = scratch / folder if here is None else here.parent
        self._store = store
        self._name = folder
        self._upload = _Upload(store, folder, self._folder)
        self._closing_seconds = closing_seconds
        self._numbers = itertools.count()
        self._writer: Any = None
        self._is_losing = False
        self._writing = threading.Lock()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        if self._is_remote and upload_seconds is not None:
            self._thread = threading.Thread(
                target=self._keep_uploading, args=(upload_seconds,), name="events", daemon=True
            )

    def __enter__(self) -> EventFolder:
        """Begins to upload where that is needed."""
        if self._thread is not None:
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Writes and uploads what is left; a store that is out of reach loses the last points."""
        with self._writing, self._forgiving():
            if self._writer is not None:
                self._writer.close()
        self._closing.set()
        if self._thread is not None:
            self._thread.join(max(0.0, self._closing_seconds()))
        elif self._is_remote:
            self._upload()

    @contextlib.contextmanager
    def at(self, step: int) -> Iterator[None]:
        """Inside, `tf.summary` calls write points of a step.

        Points that can't be written (a full disk) are lost with a warning: training is worth more.
        """
        writer: Any = None
        with self._forgiving():
            writer = self._open_writer()
        if writer is None:
            yield
            return
        with self._forgiving(), writer.as_default(step=step):
            yield

    def flush(self) -> None:
        """Makes what was written visible, where no thread does."""
        if self._writer is not None:
            with self._forgiving():
                self._writer.flush()
                self._is_losing = False
            if self._is_remote and self._thread is None:
                self._upload()

    @contextlib.contextmanager
    def _forgiving(self) -> Iterator[None]:
        """What TensorFlow can't write it never will: the next point begins a new file."""
        try:
            yield
        except tf.errors.OpError as error:
            self._writer = None
            if not self._is_losing:  # once, not at each of the points that follow
                reason = _GRAPH_NODE.sub("", error.message).splitlines()[0]
                _logger.warning("points for TensorBoard are lost for now: %s", reason)
            self._is_losing = True

    def steps(self, tag: str) -> set[int]:
        """The steps that a tag has points of, by earlier processes too."""
        if not self._is_remote:
            return _steps_in(self._folder, tag)
        with tempfile.TemporaryDirectory() as folder:
            for name in self._store.list(f"{self._name}/"):
                if _FILES.match(name.rpartition("/")[2]):
                    self._store.download(name, Path(folder) / name.rpartition("/")[2])
            return _steps_in(Path(folder), tag)

    def _open_writer(self) -> Any:  # noqa: ANN401  # a tf.summary writer
        """Made at the first point, so that a run without any has no empty event file."""
        if self._writer is not None and self._is_remote and self._upload.is_large():
            with self._writing:
                self._writer.close()
                self._writer = None
        if self._writer is None:
            suffix = f".{next(self._numbers)}" if self._is_remote else None
            self._writer = tf.summary.create_file_writer(str(self._folder), filename_suffix=suffix)
        return self._writer

    def _keep_uploading(self, seconds: float) -> None:
        while not self._closing.wait(seconds):
            with self._writing, self._forgiving():
                if self._writer is not None:
                    self._writer.flush()
                    self._is_losing = False
            self._upload()
        self._upload()


class _Upload:
    """Puts the event files of a folder that have grown into the store."""

    def __init__(self, store: ObjectStore, name: str, folder: Path) -> None:
        self._store = store
        self._name = name
        self._folder = folder
        self._done: dict[str, tuple[int, str | None]] = {}
        self._lock = threading.Lock()

    def __call__(self) -> None:
        """Uploads; what fails is tried again the next time."""
        with self._lock:
            for path in _event_files(self._folder):
                size, generation = self._done.get(path.name, (0, None))
                try:
                    data = path.read_bytes()
                    if len(data) <= size:
                        continue
                    self._done[path.name] = self._put(path.name, data, generation)
                except GenerationMismatchError:  # ours by its name: an answer that came late
                    self._done[path.name] = (size, None)
                except (TandemError, OSError) as error:
                    _logger.warning("event files are not uploaded for now: %s", error)
                    return

    def is_large(self) -> bool:
        """Whether the file under way has become long enough."""
        newest = max(
            (path.stat() for path in _event_files(self._folder)), default=None, key=_time_of
        )
        return newest is not None and newest.st_size >= _ROTATE_BYTES

    def _put(self, file: str, data: bytes, generation: str | None) -> tuple[int, str]:
        name = f"{self._name}/{file}"
        if generation is None and (standing := writing.find(self._store, name)) is not None:
            generation = standing.stat.generation
        stat = writing.replace(self._store, name, data, generation=generation)
        return len(data), stat.generation


def _event_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*") if _FILES.match(path.name))


def _time_of(status: os.stat_result) -> float:
    return status.st_mtime


def _steps_in(folder: Path, tag: str) -> set[int]:
    if not folder.is_dir():
        return set()
    events = EventAccumulator(str(folder), size_guidance={"tensors": 0})
    events.Reload()
    if tag not in events.Tags()["tensors"]:
        return set()
    return {event.step for event in events.Tensors(tag)}
