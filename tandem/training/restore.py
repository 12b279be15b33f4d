"""Starts a model from a TF1 name-based checkpoint, and says exactly what was taken from it.

The checkpoint is either used, with a report, or refused with a FineTuneError before anything is
assigned. Success is judged by values: every assigned variable is read back and compared.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from tandem.errors import FineTuneError, nearest_names
from tandem.models.ssd import SsdModel
from tandem.models.variables import checkpoint_tensors
from tandem.training.restore_plans import (
    FineTuneType,
    RestorePlan,
    check_plan,
    plan_restore,
)
from tandem.training.tensor_bundles import TensorBundle, open_bundle


@dataclass(frozen=True)
class RestoreReport:
    """What a fine-tune start took from its checkpoint.

    Attributes:
        prefix: the checkpoint.
        file_format: "V1" or "V2".
        fine_tune_type: ``fine_tune_checkpoint_type``.
        load_all_detection_vars: ``load_all_detection_checkpoint_vars``.
        num_variables: variables of the model.
        num_backbone: variables of its backbone.
        num_backbone_restored: those of them that were restored.
        plan: which variable was taken from where, what was skipped, missing or unused.
    """

    prefix: str
    file_format: str
    fine_tune_type: FineTuneType
    load_all_detection_vars: bool
    num_variables: int
    num_backbone: int
    num_backbone_restored: int
    plan: RestorePlan

    @property
    def num_restored(self) -> int:
        """Variables whose values are now the checkpoint's."""
        return len(self.plan.sources)

    def to_json(self) -> str:
        """Everything, one JSON object; every list in full."""
        plan = self.plan
        facts = {
            "checkpoint": self.prefix,
            "format": f"TF1 name-based, {self.file_format}",
            "fine_tune_checkpoint_type": self.fine_tune_type.value,
            "load_all_detection_checkpoint_vars": self.load_all_detection_vars,
            "num_variables": self.num_variables,
            "num_restored": self.num_restored,
            "num_backbone": self.num_backbone,
            "num_backbone_restored": self.num_backbone_restored,
            "restored": dict(plan.sources),
            "skipped": [row._asdict() for row in plan.skipped],
            "missing": plan.missing,
            "not_wanted": plan.not_wanted,
            "unused": plan.unused,
            "optimizer_slots": plan.slots,
            "moving_averages": plan.averages,
            "bookkeeping": plan.bookkeeping,
        }
        return json.dumps(facts, indent=1)

    def render(self, *, most: int = 12) -> str:
        """Text for people; long lists are cut after ``most`` lines, the JSON has them all."""
        plan = self.plan
        skipped = [
            f"{s.name}: model {list(s.model_shape)}, checkpoint {list(s.checkpoint_shape)}"
            for s in plan.skipped
        ]
        rest = len(plan.slots) + len(plan.averages) + len(plan.bookkeeping)
        lines = [
            f"fine-tune checkpoint {self.prefix} (TF1 name-based, {self.file_format}; type "
            f"{self.fine_tune_type.value})",
            f"  restored   {self.num_restored} of {self.num_variables} model variables, values "
            f"compared; backbone {self.num_backbone_restored} of {self.num_backbone}",
            *_section("skipped", "another shape in the checkpoint", skipped, most),
            *_section("missing", "not in the checkpoint", plan.missing, most),
            *_section("new", self._why_new(), plan.not_wanted, most if skipped else 0),
            *_section("unused", "in the checkpoint, not in the model", plan.unused, most),
            f"  not needed {rest} in the checkpoint: {len(plan.slots)} optimizer slots, "
            f"{len(plan.averages)} moving averages, {len(plan.bookkeeping)} counters",
        ]
        return "\n".join(lines)

    def _why_new(self) -> str:
        if self.fine_tune_type is FineTuneType.DETECTION:
            return "left at initial values, as load_all_detection_checkpoint_vars is false"
        return f"left at initial values by fine_tune_checkpoint_type {self.fine_tune_type.value}"


def restore_fine_tune(
    model: SsdModel,
    prefix: str,
    *,
    checkpoint_type: str = "detection",
    load_all_detection_vars: bool = False,
) -> RestoreReport:
    """Assign the checkpoint's values to the model's variables.

    Args:
        model: a built model.
        prefix: path of a V2 checkpoint without ``.index``, or of a V1 file.
        checkpoint_type: ``train_config.fine_tune_checkpoint_type``.
        load_all_detection_vars: ``train_config.load_all_detection_checkpoint_vars``.

    Raises:
        FineTuneError: the checkpoint is absent, damaged, object-based, or doesn't cover the
            backbone (or for "full" the model); nothing was assigned then.
    """
    fine_tune_type = _parse_type(checkpoint_type)
    bundle = open_bundle(prefix)
    _refuse_object_based(bundle)
    tensors = checkpoint_tensors(model)
    plan = plan_restore(
        {name: tuple(variable.shape) for name, variable in tensors.items()},
        bundle.shapes,
        backbone=model.backbone_names,
        fine_tune_type=fine_tune_type,
        load_all_detection_vars=load_all_detection_vars,
    )
    check_plan(plan, prefix=prefix, backbone=model.backbone_names, fine_tune_type=fine_tune_type)
    values = {name: _finite(bundle, source) for name, source in plan.sources.items()}
    assign_values(tensors, values, source=prefix)
    return RestoreReport(
        prefix=prefix,
        file_format=bundle.file_format,
        fine_tune_type=fine_tune_type,
        load_all_detection_vars=load_all_detection_vars,
        num_variables=len(tensors),
        num_backbone=len(model.backbone_names),
        num_backbone_restored=len(model.backbone_names & plan.sources.keys()),
        plan=plan,
    )


def assign_values(
    tensors: Mapping[str, tf.Variable], values: Mapping[str, np.ndarray], *, source: str
) -> None:
    """Assign by name, read every variable back and compare.

    Raises:
        FineTuneError: a variable does not hold the value afterwards.
    """
    for name, value in values.items():
        tensors[name].assign(value)
    wrong = [name for name, value in values.items() if not _holds(tensors[name], value)]
    if wrong:
        raise FineTuneError(
            f"{len(wrong)} variables do not hold the values of {source} after assignment, first "
            f"{wrong[0]}; the model and the checkpoint are of different types"
        )


def _holds(variable: tf.Variable, value: np.ndarray) -> bool:
    return bool(np.array_equal(variable.numpy(), value.astype(variable.dtype.as_numpy_dtype)))


def _finite(bundle: TensorBundle, name: str) -> np.ndarray:
    value = bundle.read(name)
    if not np.all(np.isfinite(value)):
        raise FineTuneError(
            f"checkpoint {bundle.prefix}: {name} has values that are not finite: the run that "
            "wrote it had diverged. Choose an earlier checkpoint."
        )
    return value


def _parse_type(checkpoint_type: str) -> FineTuneType:
    known = [member.value for member in FineTuneType]
    if checkpoint_type not in known:
        raise FineTuneError(
            f"train_config.fine_tune_checkpoint_type is {checkpoint_type!r}; supported are "
            f"{', '.join(known)}{nearest_names(checkpoint_type, known)}"
        )
    return FineTuneType(checkpoint_type)


def _refuse_object_based(bundle: TensorBundle) -> None:
    if bundle.is_object_based:
        raise FineTuneError(
            f"checkpoint {bundle.prefix} is object-based (TF2: it holds an object graph, "
            f"{len(bundle.shapes)} entries); this version restores TF1 name-based checkpoints, "
            "such as a zoo folder's model.ckpt. Point train_config.fine_tune_checkpoint at one."
        )


def _section(title: str, meaning: str, rows: tuple[str, ...] | list[str], most: int) -> list[str]:
    if not rows:
        return [f"  {title:<10} 0"]
    shown = [f"      {row}" for row in rows[:most]]
    more = [f"      and {len(rows) - most} more"] if most and len(rows) > most else []
    return [f"  {title:<10} {len(rows)} ({meaning})", *shown, *more]
