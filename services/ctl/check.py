"""`tandem check`: everything that can be known to be wrong before an experiment starts."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from services.ctl.streams import escaped
from services.exits import Exit
from tandem.config.pipeline import load_pipeline
from tandem.config.preflight import check_pipeline
from tandem.data.build import build_training_dataset
from tandem.evaluation.build import build_plan
from tandem.training.build import build_optimizer_schedule, settings_without_effect


def check(
    *, config_path: str, overrides: Sequence[str], reads_records: bool, console: Console
) -> Exit:
    """Checks a config, the files that it names and every record in them; writes nothing.

    Args:
        config_path: the pipeline.config.
        overrides: text protos merged onto it.
        reads_records: False to leave the records alone, of which there may be many.
        console: where what was found is printed.

    Raises:
        InputError: the first part that is wrong.
    """
    config = load_pipeline(config_path, overrides=overrides)
    training = check_pipeline(config, for_training=True)
    evaluation = check_pipeline(config, for_training=False)
    assert training.train is not None, "checked for training"
    plan = build_plan(config, evaluation)
    schedule = build_optimizer_schedule(config.train_config.optimizer)
    data = build_training_dataset(
        config,
        label_map=training.train.label_map,
        num_classes=training.num_classes,
        seed=0,
    )
    found, notes = "records not read", list[str]()
    if reads_records:
        report = data.check(decode_images=True)
        report.raise_for_problems()
        found, notes = f"{report.num_records} images, {report.num_boxes} boxes", report.notes()
    steps = config.train_config.num_steps
    say = [
        f"{config_path} is sound",
        f"  model        {config.model.WhichOneof('model')}, {training.num_classes} classes, "
        f"{len(plan.tensors)} variables",
        f"  training     {found}, batch {data.batch_size}, {steps or 'endless'} steps",
        f"  rates        {schedule(0):.4g} at the first step, "
        f"{schedule(max(steps - 1, 0)):.4g} at the last",
        f"  evaluation   {len(plan.tasks)} eval set(s)",
        f"  starts from  {training.fine_tune.prefix if training.fine_tune else 'scratch'}",
    ]
    say += [f"  note         {note}" for note in notes]
    say += [f"  no effect    {line}" for line in settings_without_effect(config.train_config)]
    console.print(Text("\n".join(map(escaped, say))), soft_wrap=True)
    return Exit.FINISHED
