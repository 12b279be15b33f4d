"""Names of a model's variables, and that a checkpoint of the model has all of them."""

import numpy as np
import tensorflow as tf

from tandem.models.build import build_model
from tandem.models.variables import checkpoint_tensors


def test_every_weight_is_listed_once_and_sorted(model):
    tensors = checkpoint_tensors(model)
    assert len(tensors) == len(model.weights) == 505
    assert list(tensors) == sorted(tensors)


def test_the_tensors_are_the_models_own_variables(model):
    name = "FeatureExtractor/MobileDetCPU/Conv/BatchNorm/beta"
    variable = checkpoint_tensors(model)[name]
    before = variable.numpy()
    variable.assign(before + 1.0)
    beta = model.feature_extractor.backbone.stem.batch_norm.beta
    np.testing.assert_array_equal(beta.numpy(), before + 1.0)
    variable.assign(before)


def test_tensorflows_own_checkpoint_holds_every_variable(ssd_config, tmp_path):
    """Under Keras 3 it leaves out layers kept in lists or dicts, and passes every check (K1)."""
    saved, restored = build_model(ssd_config()), build_model(ssd_config())
    for variable in checkpoint_tensors(saved).values():
        variable.assign(tf.fill(variable.shape, 7.0))
    path = tf.train.Checkpoint(model=saved).save(str(tmp_path / "ckpt"))
    tf.train.Checkpoint(model=restored).restore(path).assert_existing_objects_matched()
    left = [n for n, v in checkpoint_tensors(restored).items() if not np.all(v.numpy() == 7.0)]
    assert left == []


def test_backbone_names_are_those_of_the_backbone_without_the_extra_maps(model):
    names = checkpoint_tensors(model)
    extra = {name for name in names if "/C5_" in name}
    predictor = {name for name in names if name.startswith("BoxPredictor_")}
    assert model.backbone_names == names.keys() - extra - predictor
    assert len(extra) == 4 * 3 * 5
