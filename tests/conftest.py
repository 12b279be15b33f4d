"""Fixtures that tests of every part use."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from google.cloud import storage

from tests.rig.gcs import GcsServer, running_gcs


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real artefacts and goldens beside the checkout; a checkout alone has none."""
    folder = Path(__file__).resolve().parent.parent.parent / "shared"
    if not (folder / "golden").is_dir():
        pytest.skip(f"needs the folder of goldens and real data at {folder}")
    return folder


@pytest.fixture(scope="session")
def components(shared: Path) -> SimpleNamespace:
    """The original's outputs for single components: `cases` by id, `arrays` by name."""
    folder = shared / "golden"
    cases = json.loads((folder / "components.json").read_text())["cases"]
    arrays = dict(np.load(folder / "components.npz"))
    return SimpleNamespace(cases={case["id"]: case for case in cases}, arrays=arrays)


@pytest.fixture(scope="session")
def gcs_server() -> Iterator[GcsServer]:
    """Google Cloud Storage on loopback; each test takes prefixes of its own (`tests.rig.gcs`)."""
    with running_gcs() as server:
        yield server


@pytest.fixture(scope="session")
def gcs_client(gcs_server: GcsServer) -> Iterator[storage.Client]:
    with gcs_server.client() as client:
        yield client


@pytest.fixture(params=["eager", "graph"])
def run(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Calls a function eagerly or inside tf.function."""
    import tensorflow as tf  # noqa: PLC0415  # most tests do without, and start faster

    if request.param == "eager":
        return lambda function, *args: function(*args)
    return lambda function, *args: tf.function(function)(*args)
