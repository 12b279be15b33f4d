"""Models from configs: what is honoured, what is refused and how the error names it."""

import logging

import pytest

from tandem.config.pipeline import load_pipeline
from tandem.config.text import parse_text
from tandem.errors import ConfigError
from tandem.losses.hard_examples import HardExampleMiner
from tandem.models.build import build_model
from tandem.models.variables import checkpoint_tensors
from tandem.protos import model_pb2


def test_the_seeds_config_builds(shared):
    config = load_pipeline(str(shared / "seed" / "ssdlite_mobiledet_cpu_books.config"))
    model = build_model(config.model)
    assert model.num_classes == config.model.ssd.num_classes
    assert model.image_size == (320, 320)
    assert model.anchors.shape == (2034, 4)


def test_the_ssdlite_mobilenet_v2_sample_builds_with_its_hard_example_miner(shared):
    configs = shared / "realdata" / "configs" / "upstream" / "samples" / "configs"
    config = load_pipeline(str(configs / "ssdlite_mobilenet_v2_coco.config"))
    model = build_model(config.model)
    miner = model._ssd_loss.losses.hard_example_miner
    assert isinstance(miner, HardExampleMiner)
    assert miner.num_hard_examples == 3000
    assert model.image_size == (300, 300)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("num_classes: 0", r"model\.ssd\.num_classes is 0; it has to be at least 1"),
        ("add_background_class: false", r"model\.ssd\.add_background_class: false is not supp"),
        ("use_confidences_as_targets: true", r"model\.ssd\.use_confidences_as_targets: true"),
        ("explicit_background_class: true", r"model\.ssd\.explicit_background_class: true"),
        ("mask_head_config { }", r"model\.ssd\.mask_head_config: not supported"),
        ('feature_extractor { type: "ssd_mobilenet_v1" }',
         r"model\.ssd\.feature_extractor\.type: 'ssd_mobilenet_v1' is not supported .*"
         r"ssd_mobiledet_cpu, ssd_mobilenet_v2"),
        ("feature_extractor { fpn { } }", r"model\.ssd\.feature_extractor\.fpn: not supported"),
        ("feature_extractor { use_explicit_padding: true }",
         r"model\.ssd\.feature_extractor\.use_explicit_padding: true is not supported"),
        ("feature_extractor { override_base_feature_extractor_hyperparams: true }",
         r"override_base_feature_extractor_hyperparams: true has no effect on ssd_mobiledet_cpu"),
        ("feature_extractor { pad_to_multiple: 64 }", r"pad_to_multiple: 64 would pad the 96x64"),
        ("feature_extractor { num_layers: 7 }", r"num_layers: 7 is not between 1 and 6"),
        ("feature_extractor { num_layers: 3 }",
         r"anchor_generator has 6 layers, but model\.ssd\.feature_extractor makes 3"),
        ("feature_extractor { depth_multiplier: 0 }", r"depth_multiplier: 0 is not positive"),
        ("feature_extractor { conv_hyperparams { group_norm { } } }",
         r"model\.ssd\.feature_extractor\.conv_hyperparams\.group_norm: not supported"),
        ("box_predictor { weight_shared_convolutional_box_predictor { } }",
         r"model\.ssd\.box_predictor: 'weight_shared_convolutional_box_predictor' is not"),
        ("box_predictor { convolutional_box_predictor { box_code_size: 5 } }",
         r"box_code_size: 5, but the box coder writes 4"),
        ("box_predictor { convolutional_box_predictor { kernel_size: 1 } }",
         r"kernel_size: 1 makes no sense with use_depthwise"),
        ("box_predictor { convolutional_box_predictor { min_depth: 9 max_depth: 4 } }",
         r"min_depth: 9 is above max_depth 4"),
        ("image_resizer { fixed_shape_resizer { height: 32 } }", r"32x64 is too small"),
        ("image_resizer { keep_aspect_ratio_resizer { } }",
         r"model\.ssd\.image_resizer\.keep_aspect_ratio_resizer is not supported"),
    ],
)  # fmt: skip
def test_what_is_not_supported_is_refused_by_its_full_path(ssd_config, change, message):
    with pytest.raises(ConfigError, match=message):
        build_model(ssd_config(change))


@pytest.mark.parametrize("kind", ["faster_rcnn", "center_net"])
def test_other_architectures_are_refused_by_name(kind):
    config = parse_text(f"{kind} {{ }}", model_pb2.DetectionModel, source="test")
    with pytest.raises(ConfigError, match=rf"model\.{kind} is not supported.*model\.ssd"):
        build_model(config)


def test_frozen_batch_norm_spares_mobiledets_backbone_and_says_so(ssd_config, caplog):
    with caplog.at_level(logging.WARNING):
        model = build_model(ssd_config("freeze_batchnorm: true"))
    assert "its backbone keeps batch statistics" in caplog.text
    assert not model.feature_extractor.backbone.stem.batch_norm.params.frozen
    assert model.feature_extractor.extra[0].last.batch_norm.params.frozen
    assert model.box_predictor.heads[0].classes.depthwise.batch_norm.params.frozen


V2 = 'feature_extractor { type: "ssd_mobilenet_v2" }'


def test_mobilenet_v2_keeps_its_own_batch_norm_unless_overridden(ssd_config):
    own = build_model(ssd_config(V2)).feature_extractor.backbone
    override = "feature_extractor { override_base_feature_extractor_hyperparams: true }"
    overridden = build_model(ssd_config(V2, override)).feature_extractor.backbone
    assert own.stem.batch_norm.params.decay == pytest.approx(0.9997)
    assert overridden.stem.batch_norm.params.decay == pytest.approx(0.97)
    assert own.blocks[0].depthwise.kernel.regularizer is None
    assert overridden.blocks[0].depthwise.kernel.regularizer is not None


def test_frozen_batch_norm_freezes_mobilenet_v2(ssd_config):
    backbone = build_model(ssd_config(V2, "freeze_batchnorm: true")).feature_extractor.backbone
    assert backbone.stem.batch_norm.params.frozen


def test_fewer_layers_build_when_the_anchors_agree(ssd_config):
    model = build_model(
        ssd_config(
            "feature_extractor { num_layers: 3 }",
            "anchor_generator { ssd_anchor_generator { num_layers: 3 } }",
        )
    )
    assert len(model.box_predictor.heads) == 3
    assert not any("Conv2d_3_" in name for name in checkpoint_tensors(model))


def test_every_real_config_either_builds_or_names_a_field(shared):
    folder = shared / "realdata" / "configs" / "canonical"
    outcomes = {path: build_error(path) for path in sorted(folder.rglob("*.config"))}
    unclear = {p: text for p, text in outcomes.items() if text and not text.startswith("model")}
    assert unclear == {}
    assert sum(text is None for text in outcomes.values()) >= 3


def build_error(path):
    """What stands in the way of building a config's model; None when it builds."""
    config = load_pipeline(str(path))
    try:
        build_model(config.model)
    except ConfigError as error:
        return str(error)
    return None
