"""A model and a scorer for each evaluation set, from a config."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import tensorflow as tf

from tandem.checkpoints.names import EvalSet
from tandem.config.eval_sets import eval_sets
from tandem.config.label_maps import LabelMap
from tandem.config.preflight import Preflight
from tandem.data.build import build_evaluation_dataset, build_resizer
from tandem.errors import ConfigError
from tandem.evaluation.scoring import Scorer
from tandem.models.build import build_model
from tandem.models.variables import average_name, checkpoint_tensors
from tandem.protos import eval_pb2
from tandem.protos.pipeline_pb2 import TrainEvalPipelineConfig

logger = logging.getLogger(__name__)

METRICS_SETS = ("coco_detection_metrics",)

_REFUSED = (
    "ignore_groundtruth",
    "eval_instance_masks",
    "force_no_resize",
    "use_dummy_loss_in_eval",
    "skip_predictions_for_unlabeled_class",
    "all_metrics_per_category",
    "super_categories",
    "parameterized_metric",
    "recall_lower_bound",
)

_WITHOUT_EFFECT = {
    "num_visualizations": "images are not drawn by this version",
    "min_score_threshold": "images are not drawn by this version",
    "max_num_boxes_to_visualize": "images are not drawn by this version",
    "skip_scores": "images are not drawn by this version",
    "skip_labels": "images are not drawn by this version",
    "visualize_groundtruth_boxes": "images are not drawn by this version",
    "groundtruth_box_visualization_color": "images are not drawn by this version",
    "keep_image_id_for_visualization_export": "images are not drawn by this version",
    "visualization_export_dir": "images are not drawn by this version",
    "retain_original_images": "originals are not needed, boxes are scored at their size anyway",
    "num_examples": "the whole set is scored",
    "max_evals": "every checkpoint is scored",
    "eval_interval_secs": "the evaluator's poll_interval decides",
    "save_graph": "there is no graph to save",
    "eval_master": "one process evaluates",
    "export_path": "metrics go to the ledger, TensorBoard and Prometheus",
}


def check_eval_config(config: eval_pb2.EvalConfig) -> list[str]:
    """Checks what the config asks for.

    Returns:
        ``field: reason`` for every field that is set and changes nothing here.

    Raises:
        ConfigError: it asks for something that this version does not do.
    """
    for metrics_set in config.metrics_set:
        if metrics_set not in METRICS_SETS:
            raise ConfigError(
                f"eval_config.metrics_set: {metrics_set!r} is not supported by this version; "
                f"expected {' or '.join(METRICS_SETS)}"
            )
    for name in _REFUSED:
        if getattr(config, name):
            raise ConfigError(
                f"eval_config.{name}: {getattr(config, name)} is not supported by this version; "
                "remove it"
            )
    return [
        f"eval_config.{name}: {reason}"
        for name, reason in _WITHOUT_EFFECT.items()
        if config.HasField(name)  # type: ignore[arg-type]  # the stubs want literals
    ]


@dataclass(frozen=True)
class EvalTask:
    """One eval set, what scores it, and whether categories are reported one by one."""

    eval_set: EvalSet
    scorer: Scorer
    include_categories: bool


@dataclass(frozen=True)
class EvalPlan:
    """What it takes to score a checkpoint.

    Attributes:
        tensors: the model's variables by the names that a checkpoint saves the wanted values under.
        tasks: one per eval set, in the config's order; they score what the variables hold.
    """

    tensors: dict[str, tf.Variable]
    tasks: tuple[EvalTask, ...]


def build_plan(config: TrainEvalPipelineConfig, preflight: Preflight) -> EvalPlan:
    """Builds the model and a scorer for each eval set, and examines all records.

    Raises:
        ConfigError: a part can't be built.
        DataError: a record file is damaged, or a record is wrong.
    """
    for line in check_eval_config(config.eval_config):
        logger.info("without effect: %s", line)
    model = build_model(config.model)
    tensors = checkpoint_tensors(model)
    averaged = config.eval_config.use_moving_averages
    if averaged:
        trained = {variable.path for variable in model.trainable_variables}
        tensors = {
            average_name(name) if name in trained else name: variable
            for name, variable in tensors.items()
        }
    logger.info("scores %s of the weights", "moving averages" if averaged else "the last values")
    resizer = build_resizer(config.model)
    tasks = []
    for index, (reader, found, eval_set) in enumerate(
        zip(config.eval_input_reader, preflight.eval_sets, eval_sets(config), strict=True)
    ):
        pipeline = build_evaluation_dataset(
            reader,
            resizer=resizer,
            label_map=found.label_map,
            num_classes=preflight.num_classes,
            batch_size=config.eval_config.batch_size,
            field=f"eval_input_reader[{index}]",
        )
        check = pipeline.check()
        check.raise_for_problems()
        for note in check.notes():
            logger.warning("eval set %r: %s", eval_set.name, note)
        scorer = Scorer(model, pipeline, category_names=category_names(found.label_map))
        tasks.append(EvalTask(eval_set, scorer, config.eval_config.include_metrics_per_category))
    return EvalPlan(tensors, tuple(tasks))


def category_names(label_map: LabelMap) -> dict[int, str]:
    """Zero-based class to the name that people read."""
    return {item.id - 1: item.label for item in label_map.items}
