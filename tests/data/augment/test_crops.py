import numpy as np
import pytest
import tensorflow as tf

from tandem import fields
from tandem.data.augment.crops import SSD_CROP_OPERATIONS, CropOperation, SsdRandomCrop, crop

HEIGHT, WIDTH = 40, 60


def example(boxes=((0.25, 0.25, 0.75, 0.75), (0.0, 0.0, 0.2, 0.2))):
    boxes = np.array(boxes, np.float32).reshape(-1, 4)
    rows, columns = np.mgrid[:HEIGHT, :WIDTH]
    image = np.stack([rows, columns, np.zeros_like(rows)], -1).astype(np.uint8)
    return {
        fields.IMAGE: tf.constant(image),
        fields.BOXES: tf.constant(boxes),
        fields.CLASSES: tf.range(len(boxes)),
        fields.WEIGHTS: tf.ones([len(boxes)]),
        fields.IS_CROWD: tf.zeros([len(boxes)], tf.bool),
        fields.AREA: tf.ones([len(boxes)]),
        fields.NUM_BOXES: tf.constant(len(boxes)),
        fields.SOURCE_ID: tf.constant("a"),
    }


def apply(step, number, given=None):
    return step.apply(given or example(), seed=tf.constant([5, number], tf.int64))


def window_of(cropped):
    """(first row, first column, height, width): pixels of `example` tell where they came from."""
    image = cropped[fields.IMAGE].numpy()
    return (*image[0, 0, :2].tolist(), *image.shape[:2])


def without_source(given):
    return {key: value for key, value in given.items() if key != fields.SOURCE_ID}


def test_a_crop_cuts_pixels_and_moves_boxes():
    cropped = crop(
        without_source(example()),
        begin=tf.constant([10, 30]),
        size=tf.constant([20, 30]),
        overlap_thresh=0.5,
    )

    # The first box, (10, 15, 30, 45) in pixels, lies half in the window (10, 30, 30, 60).
    assert window_of(cropped) == (10, 30, 20, 30)
    np.testing.assert_allclose(cropped[fields.BOXES], [[0, 0, 1, 0.5]], atol=1e-6)
    assert cropped[fields.CLASSES].numpy().tolist() == [0]
    assert cropped[fields.NUM_BOXES] == 1


def test_boxes_that_lie_mostly_outside_are_dropped_and_unclipped_ones_stay_whole():
    window = {"begin": tf.constant([10, 30]), "size": tf.constant([20, 30])}

    assert crop(without_source(example()), **window, overlap_thresh=0.51)[fields.NUM_BOXES] == 0
    whole = crop(without_source(example()), **window, overlap_thresh=0.0, clip_boxes=False)
    np.testing.assert_allclose(whole[fields.BOXES], [[0, -0.5, 1, 0.5]], atol=1e-6)


def test_a_box_that_only_touches_the_window_is_dropped_even_at_threshold_0():
    touching = crop(
        without_source(example([(0.0, 0.0, 0.5, 0.5)])),
        begin=tf.constant([20, 0]),
        size=tf.constant([20, 60]),
        overlap_thresh=0.0,
    )

    assert touching[fields.NUM_BOXES] == 0
    assert touching[fields.BOXES].shape == [0, 4]


def test_the_defaults_are_the_originals_seven():
    coverages = [operation.min_object_covered for operation in SSD_CROP_OPERATIONS]

    assert coverages == [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0]
    assert [operation.overlap_thresh for operation in SSD_CROP_OPERATIONS] == coverages
    assert {
        (o.aspect_ratio_range, o.area_range, o.random_coef, o.clip_boxes)
        for o in SSD_CROP_OPERATIONS
    } == {((0.5, 2.0), (0.1, 1.0), 0.15, True)}


@pytest.mark.parametrize("coverage", [0.3, 1.0])
def test_every_crop_keeps_to_its_operation(coverage):
    step = SsdRandomCrop(
        (CropOperation(min_object_covered=coverage, overlap_thresh=0.4, random_coef=0.0),)
    )
    for number in range(40):
        cropped = apply(step, number)
        top, left, height, width = window_of(cropped)

        if (height, width) != (HEIGHT, WIDTH):  # else no crop was found
            assert 0.5 - 0.03 <= width / height <= 2.0 + 0.1  # whole pixels
            assert 0.09 <= height * width / (HEIGHT * WIDTH) <= 1.0
        covered = []
        for ymin, xmin, ymax, xmax in example()[fields.BOXES].numpy() * [
            HEIGHT,
            WIDTH,
            HEIGHT,
            WIDTH,
        ]:
            shared_height = max(0.0, min(ymax, top + height) - max(ymin, top))
            shared_width = max(0.0, min(xmax, left + width) - max(xmin, left))
            covered.append(shared_height * shared_width / ((ymax - ymin) * (xmax - xmin)))
        assert max(covered) >= coverage - 1e-3
        assert cropped[fields.CLASSES].numpy().tolist() == [
            i for i, c in enumerate(covered) if c >= 0.4
        ]
        boxes = cropped[fields.BOXES].numpy()
        assert ((boxes >= 0) & (boxes <= 1)).all()


def sizes(count):
    def size(number):
        cropped = SsdRandomCrop().apply(example(), seed=tf.stack([5, number]))
        return tf.shape(cropped[fields.IMAGE])[:2]

    return [tuple(s) for s in tf.data.Dataset.range(count).map(size).as_numpy_iterator()]


def test_fifteen_percent_stay_as_they_are_and_a_seed_always_does_the_same():
    first = sizes(300)

    # 45 by the coefficient, and those where no crop is found.
    assert 25 < sum(size == (HEIGHT, WIDTH) for size in first) < 100
    assert first[:50] == sizes(50)


def test_an_image_without_boxes_is_cropped_too():
    drawn = {tuple(apply(SsdRandomCrop(), n, example([]))[fields.IMAGE].shape) for n in range(10)}

    assert len(drawn) > 5


def test_operations_of_different_ranges_are_all_drawn_inside_tf_data():
    wide = CropOperation(aspect_ratio_range=(2.9, 3.1), area_range=(0.2, 0.3), random_coef=0.0)
    tall = CropOperation(aspect_ratio_range=(0.3, 0.35), area_range=(0.2, 0.3), random_coef=0.0)
    step = SsdRandomCrop((wide, tall))

    dataset = tf.data.Dataset.range(24).map(
        lambda number: step.apply(example(), seed=tf.stack([5, number]))
    )
    ratios = []
    for number, inside in enumerate(dataset):
        np.testing.assert_array_equal(inside[fields.IMAGE], apply(step, number)[fields.IMAGE])
        height, width = inside[fields.IMAGE].shape[:2]
        ratios.append(width / height)

    assert 4 < sum(ratio > 2 for ratio in ratios) < 20
    assert 4 < sum(ratio < 0.5 for ratio in ratios) < 20
