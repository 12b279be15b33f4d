import numpy as np
import pytest
import tensorflow as tf

from services.ctl import shapes
from tandem.config.label_maps import load_label_map
from tandem.data.checks import check_records
from tandem.data.decoding import ClassTable
from tandem.data.records import open_records

SMALL = shapes.ShapesSpec(num_train=5, num_held_out=3, image_size=96)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return shapes.make_shapes(tmp_path_factory.mktemp("shapes"), SMALL)


def test_the_set_is_sound_and_has_the_asked_numbers(made):
    label_map = load_label_map(str(made.label_map))
    classes = ClassTable.of(label_map.ids_by_name, num_classes=3)

    for path, count in [(made.train, 5), (made.held_out, 3)]:
        report = check_records(open_records([str(path)]), classes=classes, decode_images=True)
        assert report.num_records == count
        assert report.num_boxes >= count
        assert report.problems == ()
        assert report.notes() == []
    assert [category.name for category in label_map.items] == ["circle", "square", "triangle"]


def test_no_image_is_in_both_parts(made):
    def names(path):
        for serialized in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
            yield (
                tf.train.Example.FromString(serialized)
                .features.feature["image/source_id"]
                .bytes_list.value[0]
            )

    assert not set(names(made.train)) & set(names(made.held_out))


def test_the_same_seed_makes_the_same_bytes_and_another_other_ones(made, tmp_path):
    again = shapes.make_shapes(tmp_path / "again", SMALL)
    other = shapes.make_shapes(tmp_path / "other", shapes.ShapesSpec(5, 3, 96, seed=8))

    assert again.train.read_bytes() == made.train.read_bytes()
    assert other.train.read_bytes() != made.train.read_bytes()


def test_a_set_that_is_there_is_left_alone_and_one_that_is_not_whole_is_made_anew(tmp_path):
    files = shapes.make_shapes(tmp_path, SMALL)
    whole, written = files.train.read_bytes(), files.train.stat().st_mtime_ns

    shapes.make_shapes(tmp_path, SMALL)
    assert files.train.stat().st_mtime_ns == written

    files.train.write_bytes(b"cut")
    shapes.make_shapes(tmp_path, SMALL)
    assert files.train.read_bytes() == whole

    shapes.make_shapes(tmp_path, shapes.ShapesSpec(4, 3, 96))
    assert open_records([str(files.train)]).num_records == 4


def test_objects_are_large_whole_and_in_every_class():
    drawings = [shapes.draw(index, image_size=128, seed=7) for index in range(40)]

    assert {label for drawing in drawings for label in drawing.labels} == {1, 2, 3}
    assert {len(drawing.boxes) for drawing in drawings} >= {1, 2, 3}
    for box in (box for drawing in drawings for box in drawing.boxes):
        assert 0 < box.ymin < box.ymax < 128
        assert 0 < box.xmin < box.xmax < 128
        longest = max(box.ymax - box.ymin, box.xmax - box.xmin)
        assert 0.2 * 128 <= longest <= 0.7 * 128


def test_objects_stand_out_from_their_background():
    differences = []
    for index in range(30):
        drawing = shapes.draw(index, image_size=128, seed=7)
        image = drawing.image.astype(float)
        (box, *_), frame = drawing.boxes, 10
        inside = image[box.ymin : box.ymax, box.xmin : box.xmax]
        middle = inside[len(inside) // 2 - 4 :][:8, inside.shape[1] // 2 - 4 :][:, :8].mean((0, 1))
        around = image[max(0, box.ymin - frame) : box.ymin, box.xmin : box.xmax].mean((0, 1))
        if np.isfinite(around).all() and len(drawing.boxes) == 1:
            differences.append(np.abs(middle - around).sum())

    assert min(differences) > 40  # of 765


def test_a_circle_is_as_wide_as_its_size_and_its_box_is_tight():
    distance = shapes._signed_distance(
        0, centre=np.array([32.0, 30.0]), size=20.0, angle=1.0, side=64
    )

    assert shapes._bounding_box(distance) == (22, 20, 42, 40)
    assert distance[32, 30] == pytest.approx(-10 + 0.5 * 2**0.5)


@pytest.mark.parametrize("kind", range(3))
def test_the_extent_is_about_the_size_at_every_angle(kind):
    for angle in np.linspace(0, 6, 7):
        distance = shapes._signed_distance(
            kind, centre=np.array([64.0, 64.0]), size=50.0, angle=angle, side=128
        )
        box = shapes._bounding_box(distance)
        assert 38 <= max(box.ymax - box.ymin, box.xmax - box.xmin) <= 58
