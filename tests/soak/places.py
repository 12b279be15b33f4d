"""Where a run's folder is: a local folder, or a bucket of a server that makes faults."""

import contextlib
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

from tests.rig.gcs import BUCKET, GcsServer, running_gcs
from tests.soak.aims import Aim, wait_in_folder
from tests.soak.views import BucketView, FolderView

_AIM_SECONDS = 6.0
_LOOK_SECONDS = 0.005


class Place:
    """Where one run is.

    Attributes:
        location: what `--run` is given.
        view: the run's objects.
        environment: variables for the processes.
        has_faults: whether requests to it can meet faults.
    """

    has_faults = False

    def __init__(self, location: str, view, *, temporary: Path, **variables: str):
        temporary.mkdir(parents=True, exist_ok=True)
        self.location = location
        self.view = view
        self._temporary = temporary
        self.environment = {
            **os.environ,  # noqa: TID251
            "TMPDIR": str(temporary),
            "CUDA_VISIBLE_DEVICES": "-1",
            "PYTHONFAULTHANDLER": "1",  # says where a process was that didn't end
            "TF_NUM_INTRAOP_THREADS": "1",  # steps as small as these only get in each other's way
            **variables,
        }

    def strays(self):
        """Files of checkpoints under way that nobody will come back for."""
        return sorted(map(str, self._temporary.rglob(".*")))

    def keep(self, target: Path):
        """Copies the run as evidence."""
        for name in self.view.names():
            data = self.view.get(name)
            if data is not None:
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                (target / name).write_bytes(data)


class LocalPlace(Place):
    """A folder on this machine's disk."""

    def __init__(self, folder: Path, *, temporary: Path):
        super().__init__(str(folder), FolderView(folder), temporary=temporary)
        self._folder = folder

    def wait_for(self, aim: Aim, *, random):
        """Returns in the midst of the moment, or when it doesn't come."""
        wait_in_folder(self._folder, aim, seconds=_AIM_SECONDS)
        time.sleep(random.choice([0.0, random.uniform(0.0, 0.02)]))

    def settle(self):
        """Returns when nothing is under way that a dead process began: here, at once."""

    def relent(self):
        """Lets all go well again: here, it does."""

    def strays(self):
        return super().strays() + self.view.strays()


class BucketPlace(Place):
    """A prefix in a bucket, reached through the shim."""

    has_faults = True

    def __init__(self, server: GcsServer, prefix: str, *, temporary: Path):
        super().__init__(
            f"gs://{BUCKET}/{prefix}",
            BucketView(server.upstream_url, BUCKET, prefix),
            temporary=temporary,
            STORAGE_EMULATOR_HOST=server.url,
        )
        self._server = server
        self._faults = []
        self._settled_at = 0.0

    def wait_for(self, aim: Aim, *, random):
        """Returns while the request is held up at the store, or when there is none.

        The store carries it out late, refuses it, or carries it out and never says so.
        """
        late = random.choice([0.3, random.uniform(1.0, 8.0)])
        answer = random.choice([{}, {"status": 503}, {"status": "reset", "commit": True}])
        self._server.put_faults({"match": aim.value.there, "delay": late, **answer}, *self._faults)
        deadline = time.monotonic() + _AIM_SECONDS
        while time.monotonic() < deadline and not self._has_come(aim):
            time.sleep(_LOOK_SECONDS)
        self._server.put_faults(*self._faults)
        self._settled_at = time.monotonic() + late + _LOOK_SECONDS

    def _has_come(self, aim):
        return any(re.search(aim.value.there, line) for line in self._server.faulty_requests)

    def begin(self, faults):
        """Lets requests meet faults from now on, until `relent`."""
        self._faults = faults
        self._server.put_faults(*faults)

    def relent(self):
        """Lets all go well again."""
        self.begin([])

    def settle(self):
        """Returns when no request of a dead process is held up any more."""
        time.sleep(max(0.0, self._settled_at - time.monotonic()))


@contextlib.contextmanager
def places_of(store: str, folder: Path) -> Iterator:
    """A function from a run's name to a new place for it, of the kind that was asked for."""
    if store == "local":
        yield lambda name: LocalPlace(folder / name / "run", temporary=folder / name / "tmp")
        return
    with running_gcs() as server:
        yield lambda name: BucketPlace(server, f"soak/{name}", temporary=folder / name / "tmp")
