"""Checkpoints that people have: every variable has its place, and detections are the same."""

import json
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tandem.config.pipeline import load_pipeline
from tandem.data.build import build_resizer
from tandem.models.build import build_model
from tandem.models.variables import checkpoint_tensors
from tandem.training.restore import restore_fine_tune

SLOTS = ("Momentum", "RMSProp", "RMSProp_1")


def listed(path: Path):
    """Model variables of a checkpoint's list: name -> shape."""
    shapes = {}
    for line in path.read_text().splitlines():
        if line.startswith("#"):
            continue
        name, _, rest = line.split(" ", maxsplit=2)
        if name != "global_step" and name.rpartition("/")[2] not in SLOTS:
            shapes[name] = tuple(json.loads(rest[: rest.index("]") + 1]))
    return shapes


def shapes_of(config):
    return {n: tuple(v.shape) for n, v in checkpoint_tensors(build_model(config.model)).items()}


def test_the_zoos_mobiledet_has_exactly_our_variables(shared):
    listing = "ssdlite_mobiledet_cpu_320x320_coco_2020_05_19_model.ckpt-400000.txt"
    theirs = listed(shared / "realdata" / "checkpoint_index" / listing)
    config = load_pipeline(
        str(shared / "seed" / "ssdlite_mobiledet_cpu_books.config"),
        overrides=["model { ssd { num_classes: 90 } }"],
    )
    assert len(theirs) == 505
    assert shapes_of(config) == theirs


def test_an_ssd_mobilenet_v2_with_a_full_predictor_has_exactly_our_variables(shared):
    """The published model: depthwise between the extra maps, 3x3 convolutions that predict."""
    theirs = listed(
        shared / "realdata" / "checkpoint_index" / "drtghosh_ssd_mobilenet_v2_coco_model.ckpt.txt"
    )
    configs = shared / "realdata" / "configs" / "upstream" / "samples" / "configs"
    config = load_pipeline(
        str(configs / "ssd_mobilenet_v2_coco.config"),
        overrides=[
            "model { ssd { feature_extractor { use_depthwise: true } } }",
            "model { ssd { box_predictor { convolutional_box_predictor { kernel_size: 3 } } } }",
        ],
    )
    assert len(theirs) == 344
    assert shapes_of(config) == theirs


@pytest.fixture(scope="module")
def realdata(shared):
    return shared / "realdata"


@pytest.fixture(scope="module")
def pedestrian_folder(realdata):
    return realdata / "models" / "pedestrian_ssdlite_mobilenet_v2"


@pytest.fixture(scope="module")
def pedestrian_config(realdata):
    configs = realdata / "configs" / "upstream" / "samples" / "configs"
    return load_pipeline(
        str(configs / "ssdlite_mobilenet_v2_coco.config"),
        overrides=["model { ssd { num_classes: 1 } }"],
    )


@pytest.fixture(scope="module")
def pedestrian(pedestrian_folder, pedestrian_config):
    """The trained model, and the report of its restore."""
    model = build_model(pedestrian_config.model)
    prefix = str(pedestrian_folder / "model.ckpt")
    return model, restore_fine_tune(model, prefix, load_all_detection_vars=True)


def test_every_variable_of_the_pedestrian_detector_is_restored(pedestrian):
    _, report = pedestrian
    assert report.num_restored == report.num_variables == 404
    assert report.plan.unused == ()


@pytest.mark.parametrize(
    ("photo", "score_tolerance"),
    [("image1.jpg", 2e-4), ("S1_E03_R3_PICT0038.jpeg", 2e-4), ("image3.jpg", 2e-3)],
)
def test_the_pedestrian_detector_finds_what_its_frozen_graph_found(
    pedestrian, pedestrian_folder, pedestrian_config, realdata, photo, score_tolerance
):
    model, _ = pedestrian
    expected = json.loads((pedestrian_folder / "expected_detections.json").read_text())[photo]
    # The frozen graph was fed by a decoder with the accurate transform; TensorFlow's default is
    # the fast one, which alone moves scores by up to 0.01.
    image = tf.io.decode_jpeg(
        (realdata / "images" / photo).read_bytes(), channels=3, dct_method="INTEGER_ACCURATE"
    )
    assert image.shape == expected["shape"]
    resized = build_resizer(pedestrian_config.model).resize(image)[tf.newaxis]
    detections = model.detect(model(model.preprocess(resized)), tf.constant([model.image_size]))
    boxes, scores = detections.boxes[0].numpy(), detections.scores[0].numpy()
    taken = set()
    for box, score in zip(
        expected["boxes_ymin_xmin_ymax_xmax"][:5], expected["scores"][:5], strict=True
    ):
        row = int(np.abs(boxes - np.array(box)).max(axis=1).argmin())
        taken.add(row)
        np.testing.assert_allclose(boxes[row], box, atol=0.005)
        assert scores[row] == pytest.approx(score, abs=score_tolerance)
    assert taken == set(range(5))
