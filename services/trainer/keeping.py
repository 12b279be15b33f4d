"""Whether the rules by which checkpoints are kept can take effect with a config."""

from __future__ import annotations

import logging
from collections.abc import Collection

from tandem.checkpoints.names import EvalSet
from tandem.checkpoints.policies import RetentionPolicy, evaluated_metrics
from tandem.config.eval_sets import eval_sets
from tandem.config.label_maps import LabelMap, load_label_map
from tandem.errors import LabelMapError
from tandem.protos.input_reader_pb2 import InputReader
from tandem.protos.pipeline_pb2 import TrainEvalPipelineConfig

logger = logging.getLogger(__name__)


def refuse_rules_without_effect(policy: RetentionPolicy, config: TrainEvalPipelineConfig) -> None:
    """Raises ConfigError when a rule names an eval set or a metric that there won't be."""
    policy.refuse_unknown_sets(eval_sets(config))
    if policy.keep_best:
        policy.refuse_unknown_metrics(_metrics(config))


def _metrics(config: TrainEvalPipelineConfig) -> dict[EvalSet, Collection[str]]:
    """What evaluators of the config give, for the sets of which that can be known here."""
    if not config.eval_config.include_metrics_per_category:
        return dict.fromkeys(eval_sets(config), evaluated_metrics(None))
    found: dict[EvalSet, Collection[str]] = {}
    for eval_set, reader in zip(eval_sets(config), config.eval_input_reader, strict=True):
        label_map = _label_map(reader)
        if label_map is not None:
            labels = {item.id: item.label for item in label_map.items}
            found[eval_set] = evaluated_metrics(labels)
    return found


def _label_map(reader: InputReader) -> LabelMap | None:
    """An eval set's label map; None where the trainer doesn't see the evaluator's files."""
    try:
        return load_label_map(reader.label_map_path)
    except LabelMapError as error:
        logger.warning("the categories in keep_best go unchecked: %s", error)
        return None
