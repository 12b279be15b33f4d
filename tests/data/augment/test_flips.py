import numpy as np
import pytest
import tensorflow as tf

from tandem import fields
from tandem.data.augment.flips import RandomHorizontalFlip, flip_boxes


def example():
    return {
        fields.IMAGE: tf.reshape(tf.range(2 * 3 * 3), [2, 3, 3]),
        fields.BOXES: tf.constant([[0.1, 0.25, 0.5, 0.5]]),
    }


def flips(step, seed):
    flipped = step.apply(example(), seed=tf.constant([seed, 0], tf.int64))
    return not np.array_equal(flipped[fields.IMAGE], example()[fields.IMAGE])


def test_the_golden_of_the_original(shared):
    arrays = np.load(shared / "golden/components.npz")
    image, boxes = arrays["resize/image_u8"], arrays["pp/boxes"]

    flipped = RandomHorizontalFlip(1.0).apply(
        {fields.IMAGE: tf.constant(image, tf.float32), fields.BOXES: tf.constant(boxes)},
        seed=tf.constant([0, 0], tf.int64),
    )

    np.testing.assert_allclose(flipped[fields.BOXES], arrays["pp/hflip_p1/1"], atol=1e-6)
    golden = arrays["pp/hflip_p1/0"]
    scale = 1.0 if golden.max() > 1.5 else 255.0
    np.testing.assert_allclose(flipped[fields.IMAGE], golden * scale, atol=1e-3)


def test_a_box_is_mirrored_about_the_middle():
    assert flip_boxes(tf.constant([[0.1, 0.25, 0.5, 0.5]])).numpy() == pytest.approx(
        np.array([[0.1, 0.5, 0.5, 0.75]])
    )


def test_probability_0_never_flips_and_1_always_does():
    assert not any(flips(RandomHorizontalFlip(0.0), seed) for seed in range(20))
    assert all(flips(RandomHorizontalFlip(1.0), seed) for seed in range(20))


def test_half_of_the_seeds_flip_and_each_always_does_the_same():
    first = [flips(RandomHorizontalFlip(), seed) for seed in range(200)]

    assert 70 < sum(first) < 130
    assert first[:20] == [flips(RandomHorizontalFlip(), seed) for seed in range(20)]


def test_an_image_without_boxes_is_flipped():
    empty = example() | {fields.BOXES: tf.zeros([0, 4])}

    flipped = RandomHorizontalFlip(1.0).apply(empty, seed=tf.constant([0, 0], tf.int64))

    assert flipped[fields.BOXES].shape == [0, 4]
    np.testing.assert_array_equal(flipped[fields.IMAGE], empty[fields.IMAGE][:, ::-1])
