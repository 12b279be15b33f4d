"""Decides which checkpoint tensor goes into which variable; pure, nothing is read or assigned."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, TypeAlias

from tandem.errors import FineTuneError

Shape: TypeAlias = tuple[int, ...]

EXTRACTOR_SCOPE = "FeatureExtractor/"

_SLOTS = ("Momentum", "RMSProp", "RMSProp_1", "Adam", "Adam_1", "Adagrad", "Adadelta", "Ftrl")
_AVERAGE = "ExponentialMovingAverage"
_BOOKKEEPING = ("global_step", "beta1_power", "beta2_power")


class FineTuneType(str, Enum):
    """``fine_tune_checkpoint_type``: what to take from the checkpoint.

    DETECTION takes what fits by name and shape: the feature extractor, and with
    ``load_all_detection_checkpoint_vars`` the box predictor too. CLASSIFICATION takes the backbone
    from a classifier's checkpoint, whose names lack the scope of the feature extractor. FULL takes
    every variable and nothing less.
    """

    DETECTION = "detection"
    CLASSIFICATION = "classification"
    FULL = "full"


class SkippedVariable(NamedTuple):
    """A variable whose shape differs from the checkpoint's tensor of that name."""

    name: str
    model_shape: Shape
    checkpoint_shape: Shape


@dataclass(frozen=True)
class RestorePlan:
    """Where every variable of the model gets its values from.

    Attributes:
        sources: variable name -> name of the tensor in the checkpoint.
        skipped: wanted, but of another shape in the checkpoint.
        missing: wanted, but not in the checkpoint.
        not_wanted: variables that the fine-tune type leaves at their initial values.
        unused: tensors of the checkpoint that no variable takes, slots and the like excepted.
        slots: optimizer slots in the checkpoint.
        averages: moving averages of weights in the checkpoint.
        bookkeeping: step counters and the like in the checkpoint.
    """

    sources: Mapping[str, str]
    skipped: tuple[SkippedVariable, ...]
    missing: tuple[str, ...]
    not_wanted: tuple[str, ...]
    unused: tuple[str, ...]
    slots: tuple[str, ...]
    averages: tuple[str, ...]
    bookkeeping: tuple[str, ...]


def plan_restore(
    model_shapes: Mapping[str, Shape],
    checkpoint_shapes: Mapping[str, Shape],
    *,
    backbone: frozenset[str],
    fine_tune_type: FineTuneType,
    load_all_detection_vars: bool,
) -> RestorePlan:
    """Match variables with tensors by name, then by shape.

    Args:
        model_shapes: shape of every variable of the model by TF1 name.
        checkpoint_shapes: shape of every tensor of the checkpoint by name.
        backbone: names of the backbone's variables.
        fine_tune_type: what to take.
        load_all_detection_vars: DETECTION takes the predictor too.
    """
    wanted = _wanted(model_shapes, backbone, fine_tune_type, load_all=load_all_detection_vars)
    found = {name: source for name, source in wanted.items() if source in checkpoint_shapes}
    skipped = tuple(
        SkippedVariable(name, model_shapes[name], checkpoint_shapes[source])
        for name, source in found.items()
        if model_shapes[name] != checkpoint_shapes[source]
    )
    differing = {row.name for row in skipped}
    groups = _group(set(checkpoint_shapes) - set(found.values()))
    return RestorePlan(
        sources={name: source for name, source in found.items() if name not in differing},
        skipped=skipped,
        missing=tuple(name for name in wanted if name not in found),
        not_wanted=tuple(name for name in model_shapes if name not in wanted),
        **groups,
    )


def check_plan(
    plan: RestorePlan,
    *,
    prefix: str,
    backbone: frozenset[str],
    fine_tune_type: FineTuneType,
) -> None:
    """Refuse a plan that would leave part of the backbone, or for FULL of the model, random.

    Raises:
        FineTuneError: naming what is missing and what has another shape.
    """
    required = "model" if fine_tune_type is FineTuneType.FULL else "backbone"
    skipped = [s for s in plan.skipped if required == "model" or s.name in backbone]
    missing = [name for name in plan.missing if required == "model" or name in backbone]
    if not skipped and not missing:
        return
    total = len(backbone)
    if required == "model":
        total = len(plan.sources) + len(plan.skipped) + len(plan.missing)
    raise FineTuneError(
        f"checkpoint {prefix} doesn't cover the {required}: {total - len(skipped) - len(missing)} "
        f"of {total} variables fit; {_describe(skipped, missing)}. "
        + _advice(skipped, missing, plan, fine_tune_type)
    )


def _wanted(
    model_shapes: Mapping[str, Shape],
    backbone: frozenset[str],
    fine_tune_type: FineTuneType,
    *,
    load_all: bool,
) -> dict[str, str]:
    if fine_tune_type is FineTuneType.CLASSIFICATION:
        return {n: n.removeprefix(EXTRACTOR_SCOPE) for n in model_shapes if n in backbone}
    everything = load_all or fine_tune_type is FineTuneType.FULL
    return {n: n for n in model_shapes if everything or n.startswith(EXTRACTOR_SCOPE)}


def _group(names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    groups: dict[str, list[str]] = {"slots": [], "averages": [], "bookkeeping": [], "unused": []}
    for name in sorted(names):
        leaf = name.rpartition("/")[2]
        if name in _BOOKKEEPING:
            groups["bookkeeping"].append(name)
        elif leaf == _AVERAGE:
            groups["averages"].append(name)
        elif leaf in _SLOTS:
            groups["slots"].append(name)
        else:
            groups["unused"].append(name)
    return {key: tuple(value) for key, value in groups.items()}


def _describe(skipped: list[SkippedVariable], missing: list[str]) -> str:
    parts = []
    if missing:
        parts.append(f"{len(missing)} missing: {_few(missing)}")
    if skipped:
        rows = [
            f"{s.name} (model {list(s.model_shape)}, checkpoint {list(s.checkpoint_shape)})"
            for s in skipped
        ]
        parts.append(f"{len(skipped)} of another shape: {_few(rows)}")
    return "; ".join(parts)


def _few(rows: list[str], most: int = 5) -> str:
    more = f" and {len(rows) - most} more" if len(rows) > most else ""
    return ", ".join(rows[:most]) + more


def _advice(
    skipped: list[SkippedVariable],
    missing: list[str],
    plan: RestorePlan,
    fine_tune_type: FineTuneType,
) -> str:
    if missing and any(name.startswith(EXTRACTOR_SCOPE) for name in plan.unused):
        if fine_tune_type is FineTuneType.CLASSIFICATION:
            return 'It is a detection checkpoint: set fine_tune_checkpoint_type: "detection".'
        return "It holds another feature extractor: mend model.ssd.feature_extractor.type."
    if missing and not plan.sources:
        return (
            "None of its names fit. A classifier's checkpoint needs fine_tune_checkpoint_type: "
            '"classification"; else mend train_config.fine_tune_checkpoint.'
        )
    if all("ClassPredictor" in row.name for row in skipped) and not missing:
        return (
            "It was trained for another model.ssd.num_classes; fine_tune_checkpoint_type: "
            '"detection" starts the class predictor anew.'
        )
    return (
        "Set model.ssd.feature_extractor (type, depth_multiplier, min_depth) as they were when "
        "the checkpoint was trained."
    )
