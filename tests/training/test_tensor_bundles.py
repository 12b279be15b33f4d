"""Reading checkpoints by content, and what is said of damaged ones."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tandem.errors import FineTuneError
from tandem.training.tensor_bundles import open_bundle


@pytest.fixture
def saved(tmp_path):
    prefix = str(tmp_path / "model.ckpt-5")
    tf.raw_ops.SaveV2(
        prefix=prefix,
        tensor_names=["scope/weights", "global_step"],
        shape_and_slices=["", ""],
        tensors=[tf.constant([[1.0, 2.0]]), tf.constant(5, tf.int64)],
    )
    return prefix


def test_a_v2_checkpoint_lists_and_gives_its_tensors(saved):
    bundle = open_bundle(saved)
    assert bundle.file_format == "V2"
    assert bundle.shapes == {"global_step": (), "scope/weights": (1, 2)}
    assert bundle.read("scope/weights").tolist() == [[1.0, 2.0]]
    assert not bundle.is_object_based


def test_a_v1_file_is_read_as_well(tmp_path):
    path = str(tmp_path / "model.ckpt-5")
    tf.raw_ops.SaveSlices(
        filename=path,
        tensor_names=["scope/weights"],
        shapes_and_slices=[""],
        data=[tf.constant([3.0, 4.0])],
    )
    bundle = open_bundle(path)
    assert bundle.file_format == "V1"
    assert bundle.read("scope/weights").tolist() == [3.0, 4.0]


def test_both_formats_of_the_originals_checkpoint_hold_the_same(shared):
    folder = shared / "golden" / "tf1" / "mobilenet_v2_nc1_dm0p25"
    v2 = open_bundle(folder / "model.ckpt-400000")
    v1 = open_bundle(folder / "v1_format" / "model.ckpt-400000")
    assert (v2.file_format, v1.file_format) == ("V2", "V1")
    assert v1.shapes == v2.shapes
    name = "FeatureExtractor/MobilenetV2/Conv/weights"
    np.testing.assert_array_equal(v1.read(name), v2.read(name))


def test_object_based_checkpoints_are_known_by_their_graph(tmp_path):
    path = tf.train.Checkpoint(v=tf.Variable(1.0)).save(str(tmp_path / "ckpt"))
    assert open_bundle(path).is_object_based


def test_the_originals_object_based_checkpoint_is_known_too(shared):
    folder = shared / "golden" / "tf2" / "ssd_mobilenet_v2_keras_dm0p25" / "checkpoint"
    assert open_bundle(folder / "ckpt-1").is_object_based


def test_an_absent_checkpoint_is_answered_with_those_of_the_folder(saved):
    with pytest.raises(FineTuneError, match=r"no checkpoint at .*model\.ckpt: .*model\.ckpt-5\."):
        open_bundle(saved.removesuffix("-5"))


def test_an_absent_folder_is_named(tmp_path):
    with pytest.raises(FineTuneError, match=r"no checkpoint at .*nowhere/model\.ckpt"):
        open_bundle(tmp_path / "nowhere" / "model.ckpt")


def test_a_damaged_index_is_named(saved):
    Path(saved + ".index").write_bytes(b"not an index at all, but long enough to be one" * 4)
    with pytest.raises(FineTuneError, match=r"model\.ckpt-5 can't be opened"):
        open_bundle(saved)


@pytest.mark.parametrize("damage", ["cut", "flip", "remove"])
def test_damaged_data_are_found_when_read(saved, damage):
    data = Path(saved + ".data-00000-of-00001")
    content = data.read_bytes()
    data.unlink()
    if damage != "remove":
        flipped = bytes([content[0] ^ 1]) + content[1:]
        data.write_bytes(content[:2] if damage == "cut" else flipped)
    with pytest.raises(FineTuneError, match=r"model\.ckpt-5.*(can't be read|can't be opened)"):
        open_bundle(saved).read("scope/weights")
