"""A process's client of the store: around each operation a turn of the schedule, and a fault."""

from tandem.errors import StoreUnavailableError
from tests.crash.faults import Fault

_LATENCIES = (0.0, 0.0, 0.0, 0.0, 0.02, 0.1, 0.5)


class CrashingStore:
    """The store as one process sees it.

    Args:
        backend: the store itself.
        process: whose client this is.
        schedule: gives the turn to others at each operation.
        faults: what befalls the process.
        witness: is told of all that was done.
    """

    def __init__(self, backend, process, schedule, *, faults, witness):
        self._backend = backend
        self._process = process
        self._schedule = schedule
        self._faults = faults
        self._witness = witness

    @property
    def location(self):
        return self._backend.location

    def create(self, name, data):
        return self._do("create", name, data)

    def create_from_file(self, name, path, **told):
        return self._do("create_from_file", name, path, **told)

    def replace(self, name, data, *, generation):
        return self._do("replace", name, data, generation=generation)

    def get(self, name):
        return self._do("get", name)

    def read(self, name, *, start, size):
        return self._do("read", name, start=start, size=size)

    def stat(self, name):
        return self._do("stat", name)

    def generation(self, name):
        return self._do("generation", name)

    def list_times(self, prefix):
        return self._do("list_times", prefix)

    def list(self, prefix):
        return self._do("list", prefix)

    def delete(self, name, *, generation):
        return self._do("delete", name, generation=generation)

    def download(self, name, path, **kwargs):
        return self._do("download", name, path, **kwargs)

    def local_path(self, name):
        """Where there are files, looking for one is how it is read: a point to stop at as well."""
        path = self._backend.local_path(name)
        if path is not None:
            fault = self._turn("local_path", name)
            if fault is Fault.STALLED_BEFORE:
                self._stall()
            if fault in (Fault.KILLED_BEFORE, Fault.KILLED_AFTER):
                self._process.die()
            self._witness.looked_for_file(self._process, name, exists=path.exists())
        return path

    def _do(self, operation, name, *args, **kwargs):
        fault = self._turn(operation, name)
        if fault is Fault.KILLED_BEFORE:
            self._process.die()
        if fault is Fault.FAILED:
            raise StoreUnavailableError(f"{name}: not done")
        if fault is Fault.STALLED_BEFORE:
            self._stall()
        try:
            result = getattr(self._backend, operation)(name, *args, **kwargs)
        except Exception as error:
            self._witness.refused(self._process, operation, name, error)
            self._answer(fault, name)
            raise
        self._witness.done(self._process, operation, name, args, result)
        self._answer(fault, name)
        return result

    def _turn(self, operation, name):
        process = self._process
        process.wait(seconds=self._schedule.random.choice(_LATENCIES))
        process.operations += 1
        self._schedule.operations += 1
        fault = self._faults.at(process, operation, name)
        self._witness.begins(process, operation, name, fault)
        return fault

    def _answer(self, fault, name):
        if fault is Fault.KILLED_AFTER:
            self._process.die()
        if fault is Fault.STALLED_AFTER:
            self._stall()
        if fault is Fault.UNCLEAR:
            raise StoreUnavailableError(f"{name}: done, but the answer was lost")

    def _stall(self):
        stall = self._faults.stall(self._process)
        self._witness.stalls(self._process, stall)
        self._process.wait(seconds=stall.seconds, operations=stall.operations)
