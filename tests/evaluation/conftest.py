"""The original's outputs for single components."""

import json
from types import SimpleNamespace

import numpy as np
import pytest


@pytest.fixture(scope="session")
def components(shared):
    """`cases` by id, with their settings, and `arrays` by name."""
    folder = shared / "golden"
    cases = json.loads((folder / "components.json").read_text())["cases"]
    arrays = dict(np.load(folder / "components.npz"))
    return SimpleNamespace(cases={case["id"]: case for case in cases}, arrays=arrays)
