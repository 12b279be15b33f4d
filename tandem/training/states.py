"""Everything a checkpoint holds, as one flat map from name to variable, and its files.

Names are TF1's (``FeatureExtractor/.../weights``, ``.../Momentum``, ``global_step``), so that a
checkpoint of a run can be read by whatever reads TF1 checkpoints, and so that what is saved is what
this map says: TensorFlow's object graph leaves out layers that Keras 3 keeps in lists, silently.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import tensorflow as tf

from tandem.errors import ConfigError, StoreError, StoreUnavailableError
from tandem.training.optimizers import MovingAverages, Optimizer
from tandem.training.tensor_bundles import OBJECT_GRAPH

logger = logging.getLogger(__name__)

GLOBAL_STEP = "global_step"


@dataclass(frozen=True)
class TrainingState:
    """The variables of one training run.

    Attributes:
        model: weights and moving statistics of the model, by TF1 name.
        optimizer: its slots are saved beside the weights.
        averages: moving averages of the weights, where the config asks for them.
        global_step: [] int64, finished steps.
    """

    model: Mapping[str, tf.Variable]
    optimizer: Optimizer
    averages: MovingAverages | None = None
    global_step: tf.Variable = field(
        default_factory=lambda: tf.Variable(0, dtype=tf.int64, trainable=False, name=GLOBAL_STEP)
    )

    @property
    def step(self) -> int:
        """Finished steps."""
        return int(self.global_step.numpy())

    @property
    def tensors(self) -> dict[str, tf.Variable]:
        """Every variable of the state by the name that it is saved under."""
        return {**self.model, **self.extra_tensors, GLOBAL_STEP: self.global_step}

    @property
    def extra_tensors(self) -> dict[str, tf.Variable]:
        """The optimizer's slots and the moving averages."""
        averages = self.averages.tensors if self.averages else {}
        return {**self.optimizer.slot_tensors, **averages}


def save_tensors(tensors: Mapping[str, tf.Variable], prefix: Path) -> None:
    """Writes ``prefix.index`` and ``prefix.data-00000-of-00001``, TensorFlow's V2 format."""
    write_tensors(list(tensors), [variable.read_value() for variable in tensors.values()], prefix)


def write_tensors(names: Sequence[str], values: Sequence[tf.Tensor], prefix: Path) -> None:
    """Like `save_tensors`, with values.

    Raises:
        StoreUnavailableError: there is no room for the files; there may be later.
        StoreError: they can't be written.
    """
    try:
        prefix.parent.mkdir(parents=True, exist_ok=True)
        tf.raw_ops.SaveV2(
            prefix=str(prefix),
            tensor_names=list(names),
            shape_and_slices=[""] * len(names),
            tensors=list(values),
        )
    except tf.errors.ResourceExhaustedError as error:
        raise StoreUnavailableError(f"no room for checkpoint files: {error.message}") from error
    except tf.errors.OpError as error:
        raise StoreError(f"checkpoint files can't be written: {error.message}") from error


def load_tensors(tensors: Mapping[str, tf.Variable], prefix: str | Path) -> None:
    """Assigns every variable from a checkpoint that must have all of them in the same shapes.

    Raises:
        ConfigError: a variable is missing or has another shape: the config describes another
            model than the one that was saved; or the checkpoint is object-based.
    """
    reader = tf.train.load_checkpoint(str(prefix))
    saved = reader.get_variable_to_shape_map()
    if OBJECT_GRAPH in saved:
        raise ConfigError(
            f"checkpoint {prefix} is object-based, as tf.train.Checkpoint writes them; this "
            "version reads those that go by the names of variables, as TF1's and Tandem's do"
        )
    problems = [
        f"{name}: config says {variable.shape.as_list()}, checkpoint has {saved.get(name, 'none')}"
        for name, variable in tensors.items()
        if saved.get(name) != variable.shape.as_list()
    ]
    if problems:
        more = f" and {len(problems) - 5} more" if len(problems) > 5 else ""
        raise ConfigError(
            f"checkpoint {prefix} was saved by another model than the config describes: "
            f"{len(problems)} of {len(tensors)} variables differ: {'; '.join(problems[:5])}{more}. "
            "Use the config that the run began with, or a new run folder."
        )
    for name, variable in tensors.items():
        variable.assign(reader.get_tensor(name))


def resume(state: TrainingState, prefix: str | Path) -> None:
    """Restores a run's own checkpoint.

    Weights, moving statistics and the step must be there. Slots or averages that the checkpoint
    lacks (the config's optimizer changed) keep their initial values, with a warning.

    Raises:
        ConfigError: the model of the config is not the one that was saved.
    """
    load_tensors({**state.model, GLOBAL_STEP: state.global_step}, prefix)
    saved = tf.train.load_checkpoint(str(prefix)).get_variable_to_shape_map()
    extra = state.extra_tensors
    absent = [name for name in extra if name not in saved]
    load_tensors({name: v for name, v in extra.items() if name in saved}, prefix)
    for name in absent:
        if state.averages and name in state.averages.tensors:
            state.averages.tensors[name].assign(state.model[name.rpartition("/")[0]])
    if absent:
        logger.warning(
            "%d of %d optimizer slots and averages are not in %s and start anew (first: %s): "
            "the config's optimizer differs from the one that wrote it",
            len(absent),
            len(extra),
            prefix,
            absent[0],
        )
