"""The stores that schedules run on: in memory, or a folder with real files."""

from tandem.checkpoints.local import LocalStore
from tests.checkpoints.memory_store import MemoryStore


class MemoryBackend:
    """One store in memory, which all processes are clients of."""

    def __init__(self):
        self._store = MemoryStore()

    def new_client(self):
        return self._store

    def damage(self, name, data):
        self._store.damage(name, data)

    def leave_temporary_file(self, name):
        """There are none."""

    def temporary_files(self):
        return []


class LocalBackend:
    """A folder; each process opens it by itself."""

    def __init__(self, folder):
        self._folder = folder

    def new_client(self):
        return LocalStore(self._folder)

    def damage(self, name, data):
        path = self._folder / name
        with path.open("r+b") as file:
            file.write(data)

    def leave_temporary_file(self, name):
        """What a process leaves that is killed while it writes."""
        if (self._folder / ".store").is_dir():
            (self._folder / ".store" / f"{name}.tmp").write_bytes(b'{\n "checks')

    def temporary_files(self):
        """What is under way, or left of a killed process."""
        return list((self._folder / ".store").glob("*.tmp"))
