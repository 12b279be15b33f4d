"""All backends of the run store, a fake clock, and trainers on them."""

import pytest

from tandem.checkpoints.gcs import GcsStore
from tandem.checkpoints.local import LocalStore
from tests.checkpoints.actors import Evaluator, FakeClock, Trainer
from tests.checkpoints.memory_store import MemoryStore
from tests.rig.gcs import BUCKET, unique


@pytest.fixture(params=["memory", "local", "gcs"])
def backend(request):
    return request.param


@pytest.fixture
def new_store(backend, tmp_path, request):
    """Makes an empty store of each backend, by a name of its own."""
    if backend == "memory":
        return lambda name: MemoryStore()
    if backend == "local":
        return lambda name: LocalStore(tmp_path / name)
    return request.getfixturevalue("new_gcs_store")


@pytest.fixture
def new_gcs_store(gcs_client):
    prefix = unique("test")
    return lambda name, **kwargs: GcsStore(BUCKET, f"{prefix}/{name}", client=gcs_client, **kwargs)


@pytest.fixture
def store(new_store):
    return new_store("run")


@pytest.fixture
def damage(request, backend, store):
    """Puts other bytes into an object, which no client can."""
    if backend == "memory":
        return store.damage
    if backend == "local":
        return lambda name, data: store.local_path(name).write_bytes(data)
    server = request.getfixturevalue("gcs_server")
    prefix = store.location.removeprefix(f"gs://{BUCKET}/")
    return lambda name, data: server.overwrite(f"{prefix}/{name}", data)


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def new_trainer(store, clock, tmp_path):
    return lambda **kwargs: Trainer(store, clock, tmp_path / "scratch", **kwargs)


@pytest.fixture
def new_evaluator(store, clock):
    return lambda name: Evaluator(store, clock, name)
