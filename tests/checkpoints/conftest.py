"""Both backends of the run store, a fake clock, and trainers on them."""

import pytest

from tandem.checkpoints.local import LocalStore
from tests.checkpoints.actors import Evaluator, FakeClock, Trainer
from tests.checkpoints.memory_store import MemoryStore


@pytest.fixture(params=["memory", "local"])
def new_store(request, tmp_path):
    """Makes an empty store of each backend, by a name of its own."""
    return lambda name: MemoryStore() if request.param == "memory" else LocalStore(tmp_path / name)


@pytest.fixture
def store(new_store):
    return new_store("run")


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def new_trainer(store, clock, tmp_path):
    return lambda **kwargs: Trainer(store, clock, tmp_path / "scratch", **kwargs)


@pytest.fixture
def new_evaluator(store, clock):
    return lambda name: Evaluator(store, clock, name)
