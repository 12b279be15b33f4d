"""`tandem evaluate`: the COCO numbers of one checkpoint, without a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from services.ctl.streams import escaped
from services.ctl.tables import metrics_table
from services.exits import Exit
from tandem.config.fine_tune import find_checkpoint
from tandem.config.pipeline import load_pipeline
from tandem.config.preflight import check_pipeline
from tandem.evaluation.build import build_plan
from tandem.training.states import load_tensors


def evaluate(
    *, config_path: str, checkpoint: str, overrides: Sequence[str], console: Console
) -> Exit:
    """Scores a checkpoint that has every variable of the config's model.

    Raises:
        InputError: the config, its files or the checkpoint are not what they should be.
    """
    config = load_pipeline(config_path, overrides=overrides)
    preflight = check_pipeline(config, for_training=False)
    files = find_checkpoint(checkpoint, field="--checkpoint")
    plan = build_plan(config, preflight)
    load_tensors(plan.tensors, files.prefix)
    for task in plan.tasks:
        evaluation = task.scorer.score()
        metrics = evaluation.metrics.by_tag(include_categories=task.include_categories)
        name = task.eval_set.name or "(unnamed)"
        heading = f"eval set {name}: {evaluation.num_scored} images, {files.prefix}"
        console.print(Text(escaped(heading)), soft_wrap=True)
        console.print(metrics_table([(Path(files.prefix).name, metrics)], first="checkpoint"))
        losses = ", ".join(f"{tag} {value:.4f}" for tag, value in evaluation.losses.items())
        console.print(Text(escaped(losses)), soft_wrap=True)
    return Exit.FINISHED
