"""Plays faults: some at a time, each on a scene of its own."""

import contextlib
import queue
import shutil
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from services.ctl.shapes import ShapesSpec, make_shapes
from tests.faults.catalogue import Where
from tests.faults.judging import Row, Tally
from tests.faults.releases import release_scene
from tests.faults.scenes import (
    CannotError,
    Common,
    NotShownError,
    Stopped,
    bucket_scene,
    local_scene,
)
from tests.rig.cluster import NODE_IP
from tests.rig.gcs import GcsServer, running_gcs


class Player:
    """Plays each fault once.

    Args:
        folder: for data, logs and answers.
        say: is told of each fault that was played.
        stop: an event that ends everything early.
    """

    def __init__(self, folder: Path, *, say, stop):
        self._folder = folder
        self._say = say
        self._common = Common(stop, threading.Lock())
        self._lock = threading.Lock()
        self._rows = []
        self._not_run = {}
        self._shapes = make_shapes(
            folder / "data", ShapesSpec(num_train=16, num_held_out=6, image_size=64)
        )
        self._node_gcs = None

    def play(self, faults, *, workers):
        """All faults, the longest ones first."""
        waiting = queue.SimpleQueue()
        for fault in sorted(faults, key=lambda fault: -fault.seconds):
            waiting.put(fault)
        with contextlib.ExitStack() as ends:
            if any(fault.where is Where.NODE for fault in faults):
                self._node_gcs = ends.enter_context(running_gcs(host=NODE_IP))
            # The pool's end waits for scenes that were told to stop, and so for their processes.
            pool = ends.enter_context(ThreadPoolExecutor(workers))
            ends.callback(self._common.stop.set)
            for played in [pool.submit(self._play_all, waiting) for _ in range(workers)]:
                played.result()
        return Tally(tuple(self._rows), dict(self._not_run))

    def _play_all(self, faults):
        with contextlib.suppress(queue.Empty):
            while not self._common.stop.is_set():
                self._play(faults.get_nowait())

    def _play(self, fault):
        began = time.monotonic()
        folder = self._folder / f"fault-{fault.number:02d}"
        folder.mkdir()
        trouble, scene = "", None
        try:
            with self._scene(fault, folder) as scene:
                fault.play(scene)
        except CannotError as error:
            with self._lock:
                self._not_run[fault.number] = str(error)
            return
        except NotShownError as error:
            trouble = str(error)
        except Stopped:
            return
        except Exception as error:  # noqa: BLE001  # the other faults are played all the same
            (folder / "traceback.txt").write_text(traceback.format_exc())
            trouble = f"{type(error).__name__}: {error}"
        row = Row(
            fault.number,
            fault.what,
            fault.expected,
            answers=tuple(scene.answers) if scene else (),
            before=tuple(scene.before) if scene else (),
            trouble=trouble,
            seconds=time.monotonic() - began,
        )
        with self._lock:
            self._rows.append(row)
            self._say(row)

    @contextlib.contextmanager
    def _scene(self, fault, folder):
        with contextlib.ExitStack() as ends:
            scene = ends.enter_context(self._new_scene(fault, folder))
            ends.callback(scene.end)
            try:
                yield scene
            finally:
                if not self._common.stop.is_set():
                    _safely(scene.keep_facts)

    @contextlib.contextmanager
    def _new_scene(self, fault, folder):
        files = self._own_files(folder / "data")
        if fault.where is Where.NODE:
            server = self._node_gcs
            with release_scene(folder, server=server, files=files, common=self._common) as scene:
                yield scene
            return
        if fault.where is Where.FOLDER:
            yield local_scene(folder, files=files, common=self._common)
            return
        with running_gcs() as server:
            past_faults = GcsServer(server.upstream_url, server.upstream_url)
            with past_faults.client() as client:
                yield bucket_scene(
                    folder, server=server, client=client, files=files, common=self._common
                )

    def _own_files(self, folder):
        """Copies, as a fault may replace them."""
        folder.mkdir()
        paths = {
            "labels": self._shapes.label_map,
            "train": self._shapes.train,
            "held_out": self._shapes.held_out,
        }
        return {name: Path(shutil.copy(path, folder)) for name, path in paths.items()}


def _safely(keep_facts):
    """What is kept for people is worth no trouble."""
    with contextlib.suppress(Exception):
        keep_facts()
