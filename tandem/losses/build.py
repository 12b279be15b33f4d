"""Losses from the `loss` message of a pipeline.config."""

from __future__ import annotations

from dataclasses import dataclass

from tandem.boxes.build import require_choice
from tandem.errors import ConfigError
from tandem.losses.classification import ClassificationLoss, SigmoidFocalLoss, SigmoidLoss
from tandem.losses.hard_examples import HardExampleMiner, MinedBy
from tandem.losses.localization import SmoothL1Loss
from tandem.protos import losses_pb2

_MINED_BY = {
    losses_pb2.HardExampleMiner.BOTH: MinedBy.BOTH,
    losses_pb2.HardExampleMiner.CLASSIFICATION: MinedBy.CLASSIFICATION,
    losses_pb2.HardExampleMiner.LOCALIZATION: MinedBy.LOCALIZATION,
}


@dataclass(frozen=True)
class DetectionLosses:
    """The losses of a detector and their weights in the total."""

    classification: ClassificationLoss
    localization: SmoothL1Loss
    classification_weight: float
    localization_weight: float
    hard_example_miner: HardExampleMiner | None


def build_losses(config: losses_pb2.Loss, *, path: str = "model.ssd.loss") -> DetectionLosses:
    """Losses of a model; `path` is that of the message in the pipeline.config."""
    for name in ("random_example_sampler", "equalization_loss"):
        if config.HasField(name):
            raise ConfigError(f"{path}.{name} is not supported by this version: take it out")
    if config.expected_loss_weights != losses_pb2.Loss.NONE:
        chosen = losses_pb2.Loss.ExpectedLossWeights.Name(config.expected_loss_weights)
        raise ConfigError(
            f"{path}.expected_loss_weights: {chosen} is not supported; this version has NONE"
        )
    return DetectionLosses(
        classification=build_classification_loss(
            config.classification_loss, path=f"{path}.classification_loss"
        ),
        localization=build_localization_loss(
            config.localization_loss, path=f"{path}.localization_loss"
        ),
        classification_weight=config.classification_weight,
        localization_weight=config.localization_weight,
        hard_example_miner=_hard_example_miner(config, f"{path}.hard_example_miner"),
    )


def build_classification_loss(
    config: losses_pb2.ClassificationLoss, *, path: str = "model.ssd.loss.classification_loss"
) -> ClassificationLoss:
    """The classification loss; `anchorwise_output` is satisfied always: losses are per anchor."""
    chosen = require_choice(
        config,
        "classification_loss",
        path=path,
        supported=["weighted_sigmoid", "weighted_sigmoid_focal"],
    )
    if chosen == "weighted_sigmoid":
        return SigmoidLoss()
    focal = config.weighted_sigmoid_focal
    if focal.gamma < 0:
        raise ConfigError(
            f"{path}.weighted_sigmoid_focal.gamma is {focal.gamma:g}; it has to be at least 0"
        )
    return SigmoidFocalLoss(
        gamma=focal.gamma, alpha=focal.alpha if focal.HasField("alpha") else None
    )


def build_localization_loss(
    config: losses_pb2.LocalizationLoss, *, path: str = "model.ssd.loss.localization_loss"
) -> SmoothL1Loss:
    """The localisation loss; `anchorwise_output` is satisfied always: losses are per anchor."""
    require_choice(config, "localization_loss", path=path, supported=["weighted_smooth_l1"])
    delta = config.weighted_smooth_l1.delta
    if delta <= 0:
        raise ConfigError(f"{path}.weighted_smooth_l1.delta is {delta:g}; it has to be above 0")
    return SmoothL1Loss(delta=delta)


def _hard_example_miner(config: losses_pb2.Loss, path: str) -> HardExampleMiner | None:
    if not config.HasField("hard_example_miner"):
        return None
    miner = config.hard_example_miner
    if not 0 <= miner.iou_threshold <= 1:
        raise ConfigError(
            f"{path}.iou_threshold is {miner.iou_threshold:g}; it has to be from 0 to 1"
        )
    # 0 or less means no limit, as in the Object Detection API.
    return HardExampleMiner(
        iou_threshold=miner.iou_threshold,
        mined_by=_MINED_BY[miner.loss_type],
        num_hard_examples=miner.num_hard_examples if miner.num_hard_examples > 0 else None,
        max_negatives_per_positive=(
            miner.max_negatives_per_positive if miner.max_negatives_per_positive > 0 else None
        ),
        min_negatives_per_image=miner.min_negatives_per_image,
        classification_weight=config.classification_weight,
        localization_weight=config.localization_weight,
    )
