"""Everything that can be known to be wrong before the first step, in one pass.

No TensorFlow and no writing: a mistake is reported within a second and leaves no trace in the run
folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeVar

from tandem.config.files import check_path, find_records
from tandem.config.fine_tune import CheckpointFiles, find_checkpoint
from tandem.config.label_maps import LabelMap, check_num_classes, load_label_map
from tandem.config.limits import value_problems
from tandem.config.pipeline import num_classes_of
from tandem.errors import ConfigError, InputError, LabelMapError
from tandem.protos.input_reader_pb2 import InputReader
from tandem.protos.pipeline_pb2 import TrainEvalPipelineConfig

_EVAL_SET_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")

ResultT = TypeVar("ResultT")


class ReaderInput(NamedTuple):
    """What an input reader of the config reads."""

    name: str
    """Name of the evaluation set; may be empty when there is one only."""
    files: tuple[str, ...]
    """Record files, patterns expanded; at least one, none named twice."""
    label_map_path: str
    label_map: LabelMap


@dataclass(frozen=True)
class Preflight:
    """Inputs of a process, all there and in agreement."""

    num_classes: int
    train: ReaderInput | None
    """None for an evaluator."""
    eval_sets: tuple[ReaderInput, ...]
    """In the config's order; empty for a trainer."""
    fine_tune: CheckpointFiles | None
    """Where training starts from; None for scratch and for an evaluator."""


def check_pipeline(config: TrainEvalPipelineConfig, *, for_training: bool) -> Preflight:
    """Checks the numbers of a config and the files that it names.

    Args:
        config: the merged config.
        for_training: check what a trainer needs; otherwise what an evaluator needs.

    Returns:
        The files and label maps found, so that nobody looks for them again.

    Raises:
        ConfigError, LabelMapError, DataError, FineTuneError: what is wrong. Several problems make
            one error, of the first one's type, that lists them all.
    """
    problems = _Problems()
    for text in value_problems(config):
        problems.add(ConfigError(text))
    if config.HasField("graph_rewriter"):
        problems.add(
            ConfigError(
                "graph_rewriter: quantised training is not supported by this version; remove it"
            )
        )
    classes = problems.attempt(lambda: _Classes(num_classes_of(config), _classes_field(config)))
    path = config.train_config.fine_tune_checkpoint if for_training else ""
    fine_tune = problems.attempt(lambda: find_checkpoint(path)) if path else None
    # The trainer keeps a ledger for each set too, so it has to tell them apart as well.
    _check_set_names(config, problems)
    if for_training:
        inputs = [_read("train_input_reader", config.train_input_reader, classes, problems)]
    else:
        if not config.eval_input_reader:
            problems.add(ConfigError("eval_input_reader: expected at least one, found none"))
        inputs = [
            _read(f"eval_input_reader[{index}]", reader, classes, problems)
            for index, reader in enumerate(config.eval_input_reader)
        ]
    problems.raise_any()
    readers = tuple(reader for reader in inputs if reader is not None)
    assert classes is not None, "without classes there is a problem, which was raised"
    return Preflight(
        num_classes=classes.number,
        train=readers[0] if for_training else None,
        eval_sets=() if for_training else readers,
        fine_tune=fine_tune,
    )


class _Classes(NamedTuple):
    number: int
    field: str


class _Problems:
    """Collects what is wrong, so that one run of the check shows all of it."""

    def __init__(self) -> None:
        self._found: dict[str, InputError] = {}

    def add(self, problem: InputError) -> None:
        # Two readers with one broken label map are one problem.
        self._found.setdefault(str(problem), problem)

    def attempt(self, step: Callable[[], ResultT]) -> ResultT | None:
        """The step's result; None if it failed, which is noted."""
        try:
            return step()
        except InputError as problem:
            self.add(problem)
            return None

    def raise_any(self) -> None:
        found = list(self._found.values())
        if len(found) == 1:
            raise found[0]
        if found:
            lines = [f"  {number}. {problem}" for number, problem in enumerate(found, 1)]
            raise type(found[0])("\n".join([f"{len(found)} problems:", *lines]))


def _read(
    field: str, reader: InputReader, classes: _Classes | None, problems: _Problems
) -> ReaderInput | None:
    """What one reader reads; None if something is wrong with it, which is noted."""
    label_map = problems.attempt(lambda: _label_map(field, reader.label_map_path))
    if label_map is not None and classes is not None:
        problems.attempt(
            lambda: check_num_classes(
                label_map, classes.number, path=reader.label_map_path, field=classes.field
            )
        )
    files = _record_files(field, reader, problems)
    if label_map is None or not files:
        return None
    return ReaderInput(reader.name, files, reader.label_map_path, label_map)


def _label_map(field: str, path: str) -> LabelMap:
    field = f"{field}.label_map_path"
    check_path(path, field=field)
    if not os.path.exists(path):
        raise LabelMapError(f"{field}: {path!r} doesn't exist (looked from {os.getcwd()})")
    return load_label_map(path)


def _record_files(field: str, reader: InputReader, problems: _Problems) -> tuple[str, ...]:
    """All record files of a reader; fewer if some are missing, which is noted."""
    field = f"{field}.tf_record_input_reader.input_path"
    paths = reader.tf_record_input_reader.input_path
    if not paths:
        problems.add(ConfigError(f"{field}: expected at least one record file, found none"))
    files: dict[str, str] = {}
    for index, pattern in enumerate(paths):
        here = f"{field}[{index}]"
        for file in problems.attempt(partial(find_records, pattern, field=here)) or ():
            if file in files:
                problems.add(ConfigError(f"{here}: {file!r} is already read by {files[file]}"))
            files.setdefault(file, here)
    return tuple(files)


def _check_set_names(config: TrainEvalPipelineConfig, problems: _Problems) -> None:
    """With several sets each needs a name of its own; all names have to do as a folder's."""
    readers = config.eval_input_reader
    seen: dict[str, int] = {}
    for index, reader in enumerate(readers):
        here = f"eval_input_reader[{index}].name"
        if reader.name and not _EVAL_SET_NAME.fullmatch(reader.name):
            problems.add(
                ConfigError(
                    f"{here}: expected letters, digits, '_', '-' and '.', found {reader.name!r}"
                )
            )
        if not reader.name and len(readers) > 1:
            problems.add(ConfigError(f"{here}: with several sets each needs a name, found none"))
        elif reader.name in seen:
            problems.add(
                ConfigError(
                    f"{here}: {reader.name!r} is the name of eval_input_reader[{seen[reader.name]}]"
                )
            )
        seen.setdefault(reader.name, index)


def _classes_field(config: TrainEvalPipelineConfig) -> str:
    return f"model.{config.model.WhichOneof('model')}.num_classes"
