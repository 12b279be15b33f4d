"""The eval sets of a config, as the ledger knows them."""

from __future__ import annotations

from tandem.checkpoints.ledger import set_digest
from tandem.checkpoints.names import EvalSet
from tandem.protos.pipeline_pb2 import TrainEvalPipelineConfig


def eval_sets(config: TrainEvalPipelineConfig) -> tuple[EvalSet, ...]:
    """One per `eval_input_reader`, in the config's order.

    The digest is of what decides the numbers and can be known without reading the data, so that the
    trainer, which may not see the evaluator's files, comes to the same: the reader, and which
    weights are scored.
    """
    return tuple(
        EvalSet(
            reader.name,
            set_digest(
                {
                    "reader": reader.SerializeToString(deterministic=True).hex(),
                    "moving_averages": config.eval_config.use_moving_averages,
                }
            ),
        )
        for reader in config.eval_input_reader
    )
