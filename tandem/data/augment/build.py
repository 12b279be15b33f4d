"""Augmentations from `train_config.data_augmentation_options`."""

from __future__ import annotations

from collections.abc import Sequence

from tandem.data.augment.crops import SSD_CROP_OPERATIONS, CropOperation, SsdRandomCrop
from tandem.data.augment.flips import RandomHorizontalFlip
from tandem.data.augment.steps import Step
from tandem.errors import ConfigError
from tandem.protos.preprocessor_pb2 import (
    PreprocessingStep,
    SSDRandomCrop,
    SSDRandomCropOperation,
)
from tandem.protos.preprocessor_pb2 import RandomHorizontalFlip as FlipConfig

_FIELD = "train_config.data_augmentation_options"
_SUPPORTED = ("random_horizontal_flip", "ssd_random_crop")


def build_steps(options: Sequence[PreprocessingStep]) -> tuple[Step, ...]:
    """Builds the augmentations, in the config's order.

    Raises:
        ConfigError: one is not supported, or its values make no sense.
    """
    return tuple(_step(option, f"{_FIELD}[{index}]") for index, option in enumerate(options))


def _step(option: PreprocessingStep, field: str) -> Step:
    kind = option.WhichOneof("preprocessing_step")
    if kind == "random_horizontal_flip":
        return _flip(option.random_horizontal_flip, f"{field}.{kind}")
    if kind == "ssd_random_crop":
        return _crop(option.ssd_random_crop, f"{field}.{kind}")
    found = f"{field}.{kind} is not supported" if kind else f"{field} is empty"
    raise ConfigError(f"{found}; supported are {' and '.join(_SUPPORTED)}. Remove or replace it")


def _flip(config: FlipConfig, field: str) -> RandomHorizontalFlip:
    if config.keypoint_flip_permutation:
        raise ConfigError(
            f"{field}.keypoint_flip_permutation is set, but keypoints are not supported; remove it"
        )
    if not 0 <= config.probability <= 1:
        raise ConfigError(f"{field}.probability is {config.probability:g}; expected 0 to 1")
    return RandomHorizontalFlip(config.probability)


def _crop(config: SSDRandomCrop, field: str) -> SsdRandomCrop:
    if not config.operations:
        return SsdRandomCrop(SSD_CROP_OPERATIONS)
    return SsdRandomCrop(
        tuple(
            _crop_operation(operation, f"{field}.operations[{index}]")
            for index, operation in enumerate(config.operations)
        )
    )


def _crop_operation(config: SSDRandomCropOperation, field: str) -> CropOperation:
    _check_range(config, field, "aspect_ratio", highest=float("inf"))
    _check_range(config, field, "area", highest=1.0)
    for name in ("min_object_covered", "overlap_thresh", "random_coef"):
        value = getattr(config, name)
        if not 0 <= value <= 1:
            raise ConfigError(f"{field}.{name} is {value:g}; expected 0 to 1")
    return CropOperation(
        min_object_covered=config.min_object_covered,
        aspect_ratio_range=(config.min_aspect_ratio, config.max_aspect_ratio),
        area_range=(config.min_area, config.max_area),
        overlap_thresh=config.overlap_thresh,
        random_coef=config.random_coef,
        clip_boxes=config.clip_boxes,
    )


def _check_range(config: SSDRandomCropOperation, field: str, name: str, *, highest: float) -> None:
    low, high = getattr(config, f"min_{name}"), getattr(config, f"max_{name}")
    if not 0 < low <= high <= highest:
        limit = "" if highest == float("inf") else f" <= {highest:g}"
        raise ConfigError(
            f"{field}: min_{name} is {low:g} and max_{name} {high:g} (0 when not set); "
            f"expected 0 < min_{name} <= max_{name}{limit}"
        )
