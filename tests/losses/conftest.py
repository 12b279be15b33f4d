"""The original's outputs for single components, and both ways to run TensorFlow code."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf


@pytest.fixture(scope="session")
def components(shared):
    """`cases` by id, with their settings, and `arrays` by name."""
    folder = shared / "golden"
    cases = json.loads((folder / "components.json").read_text())["cases"]
    arrays = dict(np.load(folder / "components.npz"))
    return SimpleNamespace(cases={case["id"]: case for case in cases}, arrays=arrays)


@pytest.fixture(params=["eager", "graph"])
def run(request):
    """Calls a function eagerly or inside tf.function."""
    if request.param == "eager":
        return lambda function, *args: function(*args)
    return lambda function, *args: tf.function(function)(*args)
