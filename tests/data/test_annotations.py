import io
import math

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from tandem.data.annotations import examine

IDS = {"a": 1, "b": 2}
GOOD = (0.25, 0.125, 0.75, 0.625)


def problems(serialized, *, label_ids=None, num_classes=2):
    return examine(serialized, label_ids=label_ids, num_classes=num_classes).problems


def test_a_sound_record_has_no_problems(serialize):
    found = examine(
        serialize(boxes=[GOOD, GOOD], texts=["b", "a"], labels=[2, 1]), label_ids=IDS, num_classes=2
    )

    assert found.problems == ()
    assert (found.source_id, found.num_boxes, found.num_clipped_boxes) == ("a.png", 2, 0)


def test_an_image_without_objects_is_sound(serialize):
    keys = [f"image__object__bbox__{side}" for side in ("ymin", "xmin", "ymax", "xmax")]
    absent = dict.fromkeys([*keys, "image__object__class__label"])

    assert problems(serialize(boxes=[])) == ()
    assert problems(serialize(boxes=[], **absent)) == ()


@pytest.mark.parametrize(
    ("box", "reason"),
    [
        ((0.529167, 0.765625, 0.597917, 0.713068), "is inverted"),  # C38, 704 x 480
        ((0.5, 0.1, 0.4, 0.2), "is inverted"),
        ((0.5, 0.1, 0.5, 0.2), "has no area"),
        ((0.1, 0.1, 0.5, 830 / 720), "overhangs the image by more than 10%"),  # C39
        ((-0.2, 0.1, 0.5, 0.5), "overhangs the image by more than 10%"),
        ((0.1, 1.01, 0.5, 1.05), "lies outside the image"),
        ((0.1, 0.2, 0.5, 447.0), "looks like pixels"),  # C40
        ((math.nan, 0.2, 0.5, 0.7), "is not finite"),
        ((0.1, 0.2, math.inf, 0.7), "is not finite"),
    ],
)
def test_an_unsound_box_is_named_with_its_index_and_corners(serialize, box, reason):
    (problem,) = problems(serialize(boxes=[GOOD, box]))

    assert problem.startswith("box 1 (ymin, xmin, ymax, xmax) = (")
    assert reason in problem
    assert f"{box[1]:.6g}" in problem


def test_a_small_overhang_is_counted_not_refused(serialize):
    found = examine(
        serialize(boxes=[(0.1, 0.1, 0.5, 649 / 640), GOOD, (-0.01, 0, 1, 1)]),
        label_ids=None,
        num_classes=1,
    )

    assert found.problems == ()
    assert found.num_clipped_boxes == 2


def test_box_lists_of_different_lengths_are_refused_with_their_counts(serialize):
    (problem,) = problems(serialize(boxes=[GOOD] * 2, image__object__bbox__xmin=[0.1]))

    assert "image/object/bbox/ymin has 2" in problem
    assert "image/object/bbox/xmin has 1" in problem


def test_a_class_list_of_another_length_is_refused_with_both_counts(serialize):
    (problem,) = problems(serialize(boxes=[GOOD] * 46, labels=[1] * 23))

    assert problem == "there are 46 boxes, but image/object/class/label has 23"


def test_boxes_without_classes_are_refused(serialize):
    (problem,) = problems(serialize(labels=[]))

    assert problem == "there are 1 boxes, but neither class/text nor class/label"


def test_an_unknown_text_is_refused_with_the_nearest_name(serialize):
    (problem,) = problems(serialize(texts=["A"]), label_ids=IDS)
    assert problem == "class text 'A' of box 0 is not in the label map; did you mean 'a'?"

    (problem,) = problems(serialize(texts=["racoon"]), label_ids={"raccoon": 1})
    assert "did you mean 'raccoon'?" in problem


def test_the_text_wins_over_the_label_and_the_conflict_is_counted(serialize):
    found = examine(serialize(texts=["b"], labels=[1]), label_ids=IDS, num_classes=2)

    assert found.problems == ()
    assert found.num_label_conflicts == 1


def test_texts_mean_nothing_without_a_label_map(serialize):
    assert problems(serialize(texts=["nonsense"], labels=[2])) == ()


@pytest.mark.parametrize("label", [0, 5, -1])
def test_a_label_outside_the_classes_is_refused(serialize, label):
    (problem,) = problems(serialize(labels=[label]), num_classes=4)

    assert problem == f"class/label {label} of box 0 is outside 1 to 4 (num_classes)"


def test_a_text_whose_id_is_beyond_the_models_classes_is_refused(serialize):
    (problem,) = problems(serialize(texts=["b"]), label_ids=IDS, num_classes=1)

    assert problem == "class text 'b' of box 0 is label 2, outside 1 to 1"


@pytest.mark.parametrize(
    ("others", "problem"),
    [
        ({"image__encoded": None}, "image/encoded has 0 values, expected one encoded image"),
        ({"image__encoded": b""}, "image/encoded is empty"),
        ({"image__format": b"raw"}, "image/format is 'raw'"),
        ({"image__object__weight": [-1.0]}, "image/object/weight of box 0 is -1"),
        ({"image__object__area": [math.nan]}, "image/object/area of box 0 is nan"),
        ({"image__object__area": [1.0, 2.0]}, "there are 1 boxes, but image/object/area has 2"),
        (
            {"image__object__class__label": [b"1"]},
            "image/object/class/label is a bytes_list, expected a int64_list",
        ),
    ],
)
def test_other_unsound_values_are_named(serialize, others, problem):
    (found,) = problems(serialize(**others))

    assert found.startswith(problem)


def test_bytes_that_are_no_example_are_refused(serialize):
    assert problems(b"\xff\xff hello") == ("it is no tf.Example",)
    sequence = tf.train.SequenceExample()
    sequence.feature_lists.feature_list["image/encoded"].feature.add().bytes_list.value.append(b"")
    assert problems(sequence.SerializeToString()) == (
        "it is a tf.SequenceExample, expected a tf.Example",
    )


@pytest.mark.parametrize(("stated", "turned"), [((40, 20), True), ((20, 40), False)])
def test_a_photo_annotated_in_its_turned_form_is_noticed(serialize, stated, turned):
    exif = Image.Exif()
    exif[0x0112] = 6
    file = io.BytesIO()
    Image.fromarray(np.zeros((20, 40, 3), np.uint8)).save(file, "JPEG", exif=exif)

    found = examine(
        serialize(
            image__encoded=file.getvalue(), image__height=[stated[0]], image__width=[stated[1]]
        ),
        label_ids=None,
        num_classes=1,
    )

    assert found.turned == turned
