"""An evaluator on folders that the Object Detection API's trainers left behind."""

import json
import shutil

import pytest
import tensorflow as tf

from tandem.checkpoints.adopted import UNVERIFIED
from tandem.checkpoints.ledger import EntryOutcome, read_ledger
from tandem.checkpoints.opening import open_store
from tandem.evaluation.coco_metrics import TAGS
from tests.integration.conftest import Process

DATA = ".data-00000-of-00001"


def feature(values):
    if isinstance(values[0], bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
    if isinstance(values[0], int):
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def record(photo, height, width, box):
    ymin, xmin, ymax, xmax = box
    features = {
        "image/encoded": [photo.read_bytes()],
        "image/format": [b"jpeg"],
        "image/source_id": [photo.name.encode()],
        "image/height": [height],
        "image/width": [width],
        "image/object/bbox/ymin": [ymin],
        "image/object/bbox/xmin": [xmin],
        "image/object/bbox/ymax": [ymax],
        "image/object/bbox/xmax": [xmax],
        "image/object/class/text": [b"person"],
        "image/object/class/label": [1],
    }
    example = {name: feature(values) for name, values in features.items()}
    return tf.train.Example(features=tf.train.Features(feature=example)).SerializeToString()


@pytest.mark.slow
def test_a_trained_pedestrian_detector_is_scored_from_its_own_folder(shared, tmp_path):
    # Ground truth is the box that the original's frozen graph is surest of on each photo.
    realdata = shared / "realdata"
    model = realdata / "models" / "pedestrian_ssdlite_mobilenet_v2"
    expected = json.loads((model / "expected_detections.json").read_text())
    photos = ["image1.jpg", "image3.jpg", "S1_E03_R3_PICT0038.jpeg"]
    with tf.io.TFRecordWriter(str(tmp_path / "photos.record")) as writer:
        for name in photos:
            height, width, _ = expected[name]["shape"]
            box = expected[name]["boxes_ymin_xmin_ymax_xmax"][0]
            writer.write(record(realdata / "images" / name, height, width, box))
    (tmp_path / "labels.pbtxt").write_text('item { id: 1 name: "person" }')
    folder = tmp_path / "model_dir"
    folder.mkdir()
    for suffix in (".index", DATA):
        shutil.copy(model / f"model.ckpt{suffix}", folder / f"model.ckpt-120000{suffix}")
    reader = (
        f'label_map_path: "{tmp_path}/labels.pbtxt" shuffle: false '
        f'tf_record_input_reader {{ input_path: "{tmp_path}/photos.record" }}'
    )
    configs = realdata / "configs" / "upstream" / "samples" / "configs"
    evaluator = Process(
        "services.evaluator",
        *("--run", tmp_path / "results", "--checkpoint-dir", folder, "--adopt"),
        *("--config", configs / "ssdlite_mobilenet_v2_coco.config"),
        *("--override", f"model {{ ssd {{ num_classes: 1 }} }} eval_input_reader {{ {reader} }}"),
        *("--wait-interval", 1, "--poll-interval", 0.2),
        output=tmp_path / "evaluator.log",
    )
    assert evaluator.wait() == 5, evaluator.log
    assert "is adopted as it is; not verified: size and checksum" in evaluator.log
    (entry,) = read_ledger(open_store(str(tmp_path / "results")))
    assert entry.outcome is EntryOutcome.SCORED
    assert entry.checkpoint.step == 120000
    assert entry.unverified == UNVERIFIED
    assert entry.images_scored == 3
    assert entry.metrics[TAGS["ap50"]] == pytest.approx(1.0)
    assert sorted(path.name for path in folder.iterdir()) == [
        f"model.ckpt-120000{DATA}",
        "model.ckpt-120000.index",
    ]


@pytest.mark.slow
def test_adopting_what_is_no_such_folder_is_refused(small_run):
    assert small_run.trainer(num_steps=1).wait() == 0
    own = small_run.evaluator("--checkpoint-dir", small_run.run, "--adopt", num_steps=1)
    alone = small_run.evaluator("--adopt", num_steps=1)
    assert own.wait() == 2, own.log
    assert "is a run, whose checkpoints are verified as they are" in own.log
    assert alone.wait() == 2, alone.log
    assert "adopt is set without checkpoint_dir" in alone.log

    other = small_run.folder / "model_dir"
    other.mkdir()
    variable = tf.Variable([1.0])
    tf.train.Checkpoint(weight=variable).write(str(other / "ckpt-1"))
    results = small_run.folder / "results"
    unasked = small_run.evaluator("--run", results, "--checkpoint-dir", other, num_steps=1)
    asked = small_run.evaluator("--run", results, "--checkpoint-dir", other, "--adopt", num_steps=1)
    assert unasked.wait() == 2, unasked.log
    assert "set adopt to evaluate them as they are" in unasked.log
    assert asked.wait() == 2, asked.log
    assert "is object-based" in asked.log
