"""Plain TensorFlow on a run's checkpoints, which knows nothing of commits."""

import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf

from tests.soak import facts

_TRIES = 3


def restored_step(view, *, tell):
    """Reads every tensor of the checkpoint that the state file names as the newest.

    Args:
        view: the run's objects.
        tell: is told what is wrong.

    Returns:
        Its step as the checkpoint itself says; None when there is none, or something is wrong.
    """
    for _ in range(_TRIES):
        text = view.get(facts.STATE_FILE)
        if text is None:
            return None
        with tempfile.TemporaryDirectory() as folder:
            try:
                return _read(view, text, Path(folder))
            except FileNotFoundError:  # newer ones came meanwhile, so that it was retired
                continue
            except ValueError as error:
                tell(str(error))
                return None
    tell("the checkpoint that the state file names as the newest is gone again and again")
    return None


def _read(view, text, folder):
    newest = facts.named_in(text)[0]
    (folder / "checkpoint").write_bytes(text)
    for name in view.names(newest.object(".")):
        data = view.get(name)
        if data is not None:
            (folder / Path(name).name).write_bytes(data)
    prefix = tf.train.latest_checkpoint(str(folder))
    if prefix is None:
        if newest in facts.committed(view.names(newest.object("."))):
            raise ValueError(f"tf.train.latest_checkpoint finds nothing, though {newest} is there")
        raise FileNotFoundError(newest)
    reader = tf.train.load_checkpoint(prefix)
    for name in reader.get_variable_to_shape_map():
        if not np.all(np.isfinite(reader.get_tensor(name))):
            raise ValueError(f"{name} of checkpoint {newest} is not finite")
    step = int(reader.get_tensor("global_step"))
    if step != newest.step:
        raise ValueError(f"checkpoint {newest} has the global step {step}")
    return step
