"""Detection models from the ``model`` message of a pipeline.config.

Fields of ``model.ssd`` that make no difference here, whatever they say:

- ``inplace_batchnorm_update``: moving statistics are always updated within the step;
- ``implicit_example_weight``: counts only with ``use_confidences_as_targets``, which is refused;
- ``return_raw_detections_during_predict``: predictions always carry the raw outputs.

The resizer's method and colour belong to ``tandem.data``. All other fields are honoured or refused.
"""

from __future__ import annotations

import tensorflow as tf

from tandem.boxes.build import (
    build_anchor_generator,
    build_box_coder,
    build_matcher,
    build_similarity,
    require_choice,
)
from tandem.boxes.coders import CODE_SIZE
from tandem.errors import ConfigError
from tandem.losses.build import build_losses
from tandem.models.backbones.build import build_feature_extractor
from tandem.models.heads.build import build_box_predictor
from tandem.models.refusals import refuse_other_fields
from tandem.models.ssd import SsdModel, TargetRules
from tandem.models.ssd_losses import SsdLoss
from tandem.postprocess.build import build_post_processor
from tandem.protos import image_resizer_pb2, model_pb2, ssd_pb2

_KNOWN = (
    "num_classes",
    "image_resizer",
    "feature_extractor",
    "box_coder",
    "matcher",
    "similarity_calculator",
    "encode_background_as_zeros",
    "negative_class_weight",
    "box_predictor",
    "anchor_generator",
    "post_processing",
    "normalize_loss_by_num_matches",
    "normalize_loc_loss_by_codesize",
    "loss",
    "freeze_batchnorm",
    "inplace_batchnorm_update",
    "implicit_example_weight",
    "return_raw_detections_during_predict",
)


def build_model(config: model_pb2.DetectionModel) -> SsdModel:
    """The model, with all weights at their initial values.

    Raises:
        ConfigError: naming the field and what is supported instead.
    """
    require_choice(config, "model", path="model", supported=("ssd",))
    return _build_ssd(config.ssd)


def _build_ssd(config: ssd_pb2.Ssd) -> SsdModel:
    refuse_other_fields(config, path="model.ssd", known=_KNOWN)
    if config.num_classes < 1:
        raise ConfigError(f"model.ssd.num_classes is {config.num_classes}; it has to be at least 1")
    image_size = _image_size(config.image_resizer)
    extractor = build_feature_extractor(
        config.feature_extractor,
        image_size=image_size,
        freeze_batch_norm=config.freeze_batchnorm,
    )
    anchor_generator = build_anchor_generator(config.anchor_generator)
    map_sizes = extractor.map_sizes(image_size)
    num_anchors = anchor_generator.num_anchors_per_location
    if len(num_anchors) != len(map_sizes):
        raise ConfigError(
            f"model.ssd.anchor_generator has {len(num_anchors)} layers, but "
            f"model.ssd.feature_extractor makes {len(map_sizes)} feature maps (num_layers)"
        )
    predictor = build_box_predictor(
        config.box_predictor,
        in_channels=extractor.out_channels,
        num_anchors=num_anchors,
        num_classes=config.num_classes,
        code_size=CODE_SIZE,
        freeze_batch_norm=config.freeze_batchnorm,
    )
    return SsdModel(
        num_classes=config.num_classes,
        image_size=image_size,
        anchors=tf.constant(anchor_generator.generate(map_sizes, image_size=image_size)),
        feature_extractor=extractor,
        box_predictor=predictor,
        target_rules=_target_rules(config),
        ssd_loss=SsdLoss(
            losses=build_losses(config.loss),
            normalize_by_matches=config.normalize_loss_by_num_matches,
            normalize_by_code_size=config.normalize_loc_loss_by_codesize,
        ),
        post_processor=build_post_processor(config.post_processing),
    )


def _target_rules(config: ssd_pb2.Ssd) -> TargetRules:
    return TargetRules(
        similarity=build_similarity(config.similarity_calculator),
        box_coder=build_box_coder(config.box_coder),
        matcher=build_matcher(config.matcher),
        background_as_zeros=config.encode_background_as_zeros,
        negative_class_weight=config.negative_class_weight,
    )


def _image_size(config: image_resizer_pb2.ImageResizer) -> tuple[int, int]:
    path = "model.ssd.image_resizer"
    require_choice(config, "image_resizer_oneof", path=path, supported=("fixed_shape_resizer",))
    resizer = config.fixed_shape_resizer
    return resizer.height, resizer.width
