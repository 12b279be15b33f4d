"""Fine-tuning starts from the original's checkpoints, or is refused with nothing assigned."""

import json
import shutil

import numpy as np
import pytest
import tensorflow as tf

from tandem.config.pipeline import load_pipeline
from tandem.errors import FineTuneError
from tandem.models.build import build_model
from tandem.models.variables import checkpoint_tensors
from tandem.training.restore import assign_values, restore_fine_tune
from tandem.training.tensor_bundles import open_bundle

CASE = "mobilenet_v2_nc1_dm0p25"
CLASS_HEAD = "BoxPredictor_0/ClassPredictor/weights"


@pytest.fixture(scope="module")
def folder(shared):
    return shared / "golden" / "tf1" / CASE


def build(folder, *overrides):
    return build_model(load_pipeline(str(folder / "pipeline.config"), overrides=overrides).model)


@pytest.fixture(scope="module")
def model(folder):
    return build(folder)


@pytest.fixture
def fresh(model):
    """The model with every variable at -5."""
    for variable in checkpoint_tensors(model).values():
        variable.assign(tf.fill(variable.shape, -5.0))
    return model


def changed(model):
    tensors = checkpoint_tensors(model)
    return {name for name, variable in tensors.items() if np.any(variable.numpy() != -5.0)}


@pytest.mark.parametrize("place", [".", "v1_format"])
def test_every_variable_takes_the_checkpoints_values(fresh, folder, place):
    prefix = str(folder / place / "model.ckpt-400000")
    report = restore_fine_tune(fresh, prefix, load_all_detection_vars=True)
    assert report.num_restored == report.num_variables == 404
    assert report.num_backbone_restored == report.num_backbone == 260
    assert (report.plan.skipped, report.plan.missing, report.plan.unused) == ((), (), ())
    assert len(report.plan.slots) == 252
    assert report.plan.bookkeeping == ("global_step",)
    bundle = open_bundle(prefix)
    for name, variable in checkpoint_tensors(fresh).items():
        np.testing.assert_array_equal(variable.numpy(), bundle.read(name), err_msg=name)


def test_detection_leaves_the_predictor_alone(fresh, folder):
    report = restore_fine_tune(fresh, str(folder / "model.ckpt-400000"))
    assert report.num_restored == 320
    assert all(name.startswith("FeatureExtractor/") for name in changed(fresh))


def test_another_number_of_classes_skips_the_class_head_only(folder):
    model = build(folder, "model { ssd { num_classes: 4 } }")
    report = restore_fine_tune(
        model, str(folder / "model.ckpt-400000"), load_all_detection_vars=True
    )
    assert len(report.plan.skipped) == 6 * 2
    assert all("ClassPredictor/" in row.name for row in report.plan.skipped)
    row = next(row for row in report.plan.skipped if row.name == CLASS_HEAD)
    assert row.model_shape == (1, 1, 144, 3 * 5)
    assert row.checkpoint_shape == (1, 1, 144, 3 * 2)


def test_the_report_reads_well_and_its_json_has_everything(folder):
    model = build(folder, "model { ssd { num_classes: 4 } }")
    report = restore_fine_tune(
        model, str(folder / "model.ckpt-400000"), load_all_detection_vars=True
    )
    text = report.render()
    assert "restored   392 of 404 model variables, values compared; backbone 260 of 260" in text
    assert f"{CLASS_HEAD}: model [1, 1, 144, 15], checkpoint [1, 1, 144, 6]" in text
    assert "missing    0" in text
    assert "252 optimizer slots, 0 moving averages, 1 counters" in text
    facts = json.loads(report.to_json())
    assert facts["num_restored"] == len(facts["restored"]) == 392
    assert len(facts["skipped"]) == 12
    assert facts["skipped"][0].keys() == {"name", "model_shape", "checkpoint_shape"}
    assert len(facts["optimizer_slots"]) == 252


def test_full_with_another_number_of_classes_is_refused_before_anything_is_assigned(folder):
    model = build(folder, "model { ssd { num_classes: 4 } }")
    before = {name: v.numpy() for name, v in checkpoint_tensors(model).items()}
    with pytest.raises(FineTuneError, match=r"ClassPredictor.*num_classes"):
        restore_fine_tune(model, str(folder / "model.ckpt-400000"), checkpoint_type="full")
    for name, variable in checkpoint_tensors(model).items():
        np.testing.assert_array_equal(variable.numpy(), before[name])


def test_full_takes_every_variable(fresh, folder):
    report = restore_fine_tune(fresh, str(folder / "model.ckpt-400000"), checkpoint_type="full")
    assert report.num_restored == 404


def test_another_depth_multiplier_is_refused(folder):
    model = build(folder, "model { ssd { feature_extractor { depth_multiplier: 0.5 } } }")
    with pytest.raises(FineTuneError, match=r"doesn't cover the backbone: \d+ of 260"):
        restore_fine_tune(model, str(folder / "model.ckpt-400000"))


def test_another_architecture_is_refused(fresh, shared):
    prefix = shared / "golden" / "tf1" / "mobiledet_cpu_nc1_dm0p25" / "model.ckpt-400000"
    with pytest.raises(FineTuneError, match=r"another feature extractor"):
        restore_fine_tune(fresh, str(prefix))
    assert changed(fresh) == set()


def test_an_object_based_checkpoint_is_refused_by_content(fresh, shared):
    prefix = shared / "golden" / "tf2" / "ssd_mobilenet_v2_keras_dm0p25" / "checkpoint" / "ckpt-1"
    with pytest.raises(FineTuneError, match=r"is object-based"):
        restore_fine_tune(fresh, str(prefix))


def test_a_classifiers_checkpoint_fills_the_backbone(fresh, folder, tmp_path):
    bundle = open_bundle(folder / "model.ckpt-400000")
    names = sorted(fresh.backbone_names)
    prefix = str(tmp_path / "mobilenet_v2.ckpt")
    tf.raw_ops.SaveV2(
        prefix=prefix,
        tensor_names=[name.removeprefix("FeatureExtractor/") for name in names],
        shape_and_slices=[""] * len(names),
        tensors=[tf.constant(bundle.read(name)) for name in names],
    )
    report = restore_fine_tune(fresh, prefix, checkpoint_type="classification")
    assert report.num_restored == report.num_backbone == 260
    assert changed(fresh) == fresh.backbone_names


def test_a_moved_folder_makes_no_difference(fresh, folder, tmp_path):
    """Its ``checkpoint`` file names a place that does not exist any more (C13)."""
    for path in folder.glob("model.ckpt-400000.*"):
        shutil.copy(path, tmp_path)
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: "/old/place/model.ckpt-400000"\n')
    assert restore_fine_tune(fresh, str(tmp_path / "model.ckpt-400000")).num_restored == 320


def test_damaged_data_are_refused_with_nothing_assigned(fresh, folder, tmp_path):
    for path in folder.glob("model.ckpt-400000.*"):
        shutil.copyfile(path, tmp_path / path.name)
    data = tmp_path / "model.ckpt-400000.data-00000-of-00001"
    content = bytearray(data.read_bytes())
    content[len(content) // 2] ^= 1
    data.write_bytes(bytes(content))
    with pytest.raises(FineTuneError, match=r"can't be read"):
        restore_fine_tune(fresh, str(tmp_path / "model.ckpt-400000"), checkpoint_type="full")
    assert changed(fresh) == set()


def test_values_that_are_not_finite_are_refused(fresh, tmp_path):
    tensors = checkpoint_tensors(fresh)
    values = {name: variable.numpy() for name, variable in tensors.items()}
    values["FeatureExtractor/MobilenetV2/Conv/weights"][0, 0, 0, 0] = np.nan
    prefix = str(tmp_path / "model.ckpt")
    tf.raw_ops.SaveV2(
        prefix=prefix,
        tensor_names=list(values),
        shape_and_slices=[""] * len(values),
        tensors=[tf.constant(value) for value in values.values()],
    )
    with pytest.raises(FineTuneError, match=r"MobilenetV2/Conv/weights has values that are not"):
        restore_fine_tune(fresh, prefix)


def test_an_unknown_type_is_answered_with_the_known_ones(fresh):
    with pytest.raises(FineTuneError, match=r"'detecton'; supported are .*did you mean 'detect"):
        restore_fine_tune(fresh, "x", checkpoint_type="detecton")


def test_success_is_judged_by_values():
    """An assignment that rounds is no restore: half precision can't hold this."""
    variable = tf.Variable(tf.zeros([1], tf.float16))
    assign_values({"a": variable}, {"a": np.array([0.5], np.float16)}, source="m.ckpt")
    with pytest.raises(FineTuneError, match=r"1 variables do not hold the values of m\.ckpt"):
        assign_values({"a": Forgetful(variable)}, {"a": np.array([2.0])}, source="m.ckpt")


class Forgetful:
    """A variable that takes no values."""

    def __init__(self, variable):
        self.dtype = variable.dtype
        self.numpy = variable.numpy

    def assign(self, value):
        pass
