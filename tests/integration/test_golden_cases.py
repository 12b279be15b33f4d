"""Our models beside the original's stored outputs: what `scripts/golden` compares."""

from dataclasses import replace

import numpy as np
import pytest

from services.ctl.golden.cases import load_case
from services.ctl.golden.command import compare_case
from services.ctl.golden.training import compare_training
from services.ctl.golden.weights import assign_weights
from tandem.errors import ConfigError
from tandem.models.build import build_model

CASES = [
    "mobiledet_cpu_nc1_dm1",
    "mobiledet_cpu_nc90_dm1",
    "mobiledet_cpu_nc1_dm0p25",
    "mobiledet_cpu_nc1_dm0p25_freezebn",
]


@pytest.mark.parametrize("name", CASES)
def test_every_output_equals_the_originals(shared, name):
    rows = list(compare_case(load_case(shared / "golden" / "tf1" / name)))
    assert [str(row) for row in rows if not row.equal] == []
    compared = {row.name for row in rows}
    assert {f"feature_map_{i}" for i in range(6)} <= compared
    assert {"anchors", "box_encodings", "class_predictions_with_background"} <= compared
    assert {"eval_Loss_total_loss", "train_Loss_total_loss", "det_detection_boxes"} <= compared


def test_no_tolerance_is_wider_than_promised(shared):
    """Where rounding is not amplified no line is judged more leniently than it should be."""
    rows = compare_case(load_case(shared / "golden" / "tf1" / "mobiledet_cpu_nc1_dm1"))
    tolerances = {row.name: row.tolerance for row in rows}
    assert tolerances.pop("anchors") == 1e-5
    assert tolerances.pop("train_gradient_norms") == 0.25
    detections = {name: tolerances.pop(name) for name in list(tolerances) if "det_det" in name}
    assert set(detections.values()) == {1e-3}
    assert max(tolerances.values()) == 1e-4


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("tf1/mobiledet_gpu_nc1_dm0p25", "model.ssd.feature_extractor.type"),
        ("tf2/ssd_resnet50_v1_fpn_keras", "model.ssd.feature_extractor.type"),
        ("tf2/center_net_resnet50_v1_fpn", "model.center_net"),
        ("tf2/faster_rcnn_resnet50_keras", "model.faster_rcnn"),
    ],
)
def test_an_architecture_still_to_come_is_named_by_its_field(shared, name, field):
    with pytest.raises(ConfigError, match=field.replace(".", r"\.")):
        list(compare_case(load_case(shared / "golden" / name)))


def test_mobilenet_v2_equals_the_original_but_for_rounding_in_the_stored_training_values(shared):
    """Double precision is no nearer to the values that differ, so they carry the rounding."""
    rows = list(compare_case(load_case(shared / "golden" / "tf1" / "mobilenet_v2_nc1_dm0p25")))
    different = {row.name: row for row in rows if not row.equal}
    assert set(different) <= {
        "train_Loss_localization_loss",
        "train_Loss_classification_loss",
        "train_moving_statistics",
        "train_moving_sums",
    }
    for row in different.values():
        in_double_precision = float(row.note.rpartition("in double precision ")[2])
        assert in_double_precision > 0.5 * row.difference, str(row)


def test_a_wrong_training_loss_and_moving_statistic_are_found(shared):
    case = load_case(shared / "golden" / "tf1" / "mobiledet_cpu_nc1_dm0p25")
    wrong = dict(case.arrays)
    wrong["train_Loss_localization_loss"] = wrong["train_Loss_localization_loss"] * 1.0005
    name = "after1step/BoxPredictor_0/ClassPredictor_depthwise/BatchNorm/moving_variance"
    wrong[name] = wrong[name] * np.float32(1.001)
    model = build_model(case.config.model)
    assign_weights(model)
    images = model.preprocess(case.arrays["images_uint8"])
    rows = compare_training(model, images, replace(case, arrays=wrong))
    different = {row.name for row in rows if not row.equal}
    assert different == {"train_Loss_localization_loss", "train_moving_statistics"}
