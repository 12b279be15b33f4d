import pytest
from google.protobuf import text_format

from tandem.data.augment.build import build_steps
from tandem.data.augment.crops import SSD_CROP_OPERATIONS, CropOperation, SsdRandomCrop
from tandem.data.augment.flips import RandomHorizontalFlip
from tandem.errors import ConfigError
from tandem.protos.train_pb2 import TrainConfig


def build(text):
    return build_steps(text_format.Parse(text, TrainConfig()).data_augmentation_options)


def test_the_seeds_augmentations_are_built_in_order():
    steps = build(
        "data_augmentation_options { random_horizontal_flip {} }"
        "data_augmentation_options { ssd_random_crop {} }"
    )

    assert steps == (RandomHorizontalFlip(0.5), SsdRandomCrop(SSD_CROP_OPERATIONS))


def test_crop_operations_come_from_the_config():
    (step,) = build(
        """data_augmentation_options { ssd_random_crop { operations {
             min_object_covered: 0.5 min_aspect_ratio: 0.75 max_aspect_ratio: 1.5
             min_area: 0.25 max_area: 1.0 overlap_thresh: 0.25 random_coef: 0.125 clip_boxes: false
           } } }"""
    )

    assert step.operations == (
        CropOperation(0.5, (0.75, 1.5), (0.25, 1.0), 0.25, 0.125, clip_boxes=False),
    )


CROP = "min_aspect_ratio: 1 max_aspect_ratio: 1 min_area: 0.5"


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (
            "random_rotation90 {}",
            r"\[0\].random_rotation90 is not supported; supported are random_h",
        ),
        ("", r"data_augmentation_options\[0\] is empty"),
        ("random_horizontal_flip { keypoint_flip_permutation: 0 }", "flip_permutation is set"),
        ("random_horizontal_flip { probability: 1.5 }", "probability is 1.5; expected 0 to 1"),
        ("ssd_random_crop { operations { min_area: 0.5 max_area: 1 } }", "min_aspect_ratio is 0 a"),
        (f"ssd_random_crop {{ operations {{ {CROP} max_area: 2 }} }}", "max_area 2"),
        (
            f"ssd_random_crop {{ operations {{ {CROP} max_area: 1 overlap_thresh: 3 }} }}",
            "overlap_thresh is 3",
        ),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(option, message):
    with pytest.raises(ConfigError, match=message):
        build(f"data_augmentation_options {{ {option} }}")
