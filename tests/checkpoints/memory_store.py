"""An object store in memory: linearizable, thread-safe, with generations that never repeat."""

import itertools
import threading
import time
from pathlib import Path

from tandem.checkpoints.checksums import crc32c_of
from tandem.checkpoints.objects import ObjectStat, StoredObject, ignoring, nothing
from tandem.errors import GenerationMismatchError, ObjectExistsError, ObjectNotFoundError


class MemoryStore:
    location = "memory"

    def __init__(self):
        self._lock = threading.Lock()
        self._objects = {}
        self._generations = itertools.count(1)
        self._modified_at = {}

    def create(self, name, data):
        with self._lock:
            if name in self._objects:
                raise ObjectExistsError(name)
            return self._put(name, data)

    def create_from_file(self, name, path, *, on_bytes=ignoring):
        data = Path(path).read_bytes()
        on_bytes(len(data))
        return self.create(name, data)

    def replace(self, name, data, *, generation):
        with self._lock:
            standing = self._objects.get(name)
            if (standing.stat.generation if standing else None) != generation:
                raise GenerationMismatchError(name)
            return self._put(name, data)

    def get(self, name):
        with self._lock:
            return self._find(name)

    def read(self, name, *, start, size):
        return self.get(name).data[start : start + size]

    def stat(self, name):
        return self.get(name).stat

    def generation(self, name):
        return self.stat(name).generation

    def list_times(self, prefix):
        return {name: self._modified_at[name] for name in self.list(prefix)}

    def list(self, prefix):
        with self._lock:
            return sorted(name for name in self._objects if name.startswith(prefix))

    def delete(self, name, *, generation):
        with self._lock:
            if self._find(name).stat.generation != generation:
                raise GenerationMismatchError(name)
            del self._objects[name]

    def download(self, name, path, *, on_piece=nothing):
        stored = self.get(name)
        with path.open("xb") as file:
            file.write(stored.data)
            on_piece()
        return stored.stat

    def local_path(self, name):
        return None

    def damage(self, name, data):
        """What no client can do: other bytes under the same name and generation."""
        with self._lock:
            self._objects[name] = StoredObject(data, self._stat(name, data, "damaged"))

    def _find(self, name):
        if name not in self._objects:
            raise ObjectNotFoundError(name)
        return self._objects[name]

    def _put(self, name, data):
        stat = self._stat(name, data, str(next(self._generations)))
        self._objects[name] = StoredObject(bytes(data), stat)
        self._modified_at[name] = time.time()
        return stat

    def _stat(self, name, data, generation):
        return ObjectStat(name, len(data), crc32c_of(data), generation)
