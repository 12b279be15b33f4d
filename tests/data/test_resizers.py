import json

import numpy as np
import pytest
import tensorflow as tf

from tandem.data.resizers import FixedShapeResizer, ResizeMethod

GOLDEN_CASES = [
    ("fixed", FixedShapeResizer(32, 20)),
    ("fixed_gray", FixedShapeResizer(32, 20, grayscale=True)),
    ("fixed_area", FixedShapeResizer(16, 20, ResizeMethod.AREA)),
    ("fixed_bicubic", FixedShapeResizer(16, 20, ResizeMethod.BICUBIC)),
    ("fixed_nearest", FixedShapeResizer(16, 50, ResizeMethod.NEAREST_NEIGHBOR)),
]


@pytest.mark.parametrize(("name", "resizer"), GOLDEN_CASES)
def test_every_sampling_equals_the_originals(shared, name, resizer):
    arrays = np.load(shared / "golden/components.npz")
    cases = json.loads((shared / "golden/components.json").read_text())["cases"]
    true_size = next(case["true_shape"] for case in cases if case["id"] == f"resizer/{name}")[:2]

    resized = resizer.resize(tf.constant(arrays["resize/image_u8"]))

    np.testing.assert_allclose(resized, arrays[f"resize/{name}/image"], rtol=0, atol=2e-4)
    assert resizer.true_size().numpy().tolist() == true_size


def test_bytes_and_floats_resize_alike_inside_tf_data():
    image = np.random.default_rng(0).integers(0, 256, [9, 7, 3], np.uint8)
    resizer = FixedShapeResizer(5, 4)
    dataset = tf.data.Dataset.from_tensors(image).map(resizer.resize)

    assert dataset.element_spec == tf.TensorSpec([5, 4, 3], tf.float32)
    np.testing.assert_array_equal(
        dataset.get_single_element(), resizer.resize(tf.constant(image, tf.float32))
    )


def test_bilinear_samples_at_whole_pixels_not_at_centres():
    ramp = tf.reshape(tf.constant([0.0, 10.0, 20.0, 30.0]), [1, 4, 1]) * tf.ones([1, 1, 3])

    halved = FixedShapeResizer(1, 2).resize(ramp)

    # Source positions 0 and 2; the kernels of tf.image.resize would give 5 and 25.
    assert halved[0, :, 0].numpy().tolist() == [0.0, 20.0]
