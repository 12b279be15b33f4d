import math

import numpy as np
import pytest

from tandem.boxes.anchors import AnchorShape, SsdAnchorGenerator, ssd_layers

DEFAULTS = {
    "min_scale": 0.2,
    "max_scale": 0.95,
    "scales": (),
    "aspect_ratios": (1.0, 2.0),
    "interpolated_scale_aspect_ratio": 1.0,
    "reduce_boxes_in_lowest_layer": False,
}


def test_one_square_anchor_sits_in_the_middle_of_each_cell():
    generator = SsdAnchorGenerator(layers=((AnchorShape(0.5, 1.0),),))
    anchors = generator.generate([(1, 2)], image_size=(10, 10))
    np.testing.assert_allclose(anchors, [[0.25, 0, 0.75, 0.5], [0.25, 0.5, 0.75, 1.0]])
    assert anchors.dtype == np.float32


def test_anchors_run_by_row_then_column_then_shape():
    shapes = (AnchorShape(0.2, 1.0), AnchorShape(0.4, 1.0))
    anchors = SsdAnchorGenerator(layers=(shapes,)).generate([(2, 2)], image_size=(1, 1))
    centres = (anchors[:, :2] + anchors[:, 2:]) / 2
    expected = [[0.25, 0.25]] * 2 + [[0.25, 0.75]] * 2 + [[0.75, 0.25]] * 2 + [[0.75, 0.75]] * 2
    np.testing.assert_allclose(centres, expected, atol=1e-6)
    np.testing.assert_allclose(anchors[:, 2] - anchors[:, 0], [0.2, 0.4] * 4, atol=1e-6)


def test_an_aspect_ratio_is_width_over_height_and_keeps_the_area():
    generator = SsdAnchorGenerator(layers=((AnchorShape(0.5, 4.0),),))
    ymin, xmin, ymax, xmax = generator.generate([(1, 1)], image_size=(1, 1))[0]
    assert (xmax - xmin) / (ymax - ymin) == pytest.approx(4.0)
    assert (xmax - xmin) * (ymax - ymin) == pytest.approx(0.25)


def test_a_square_anchor_is_square_in_pixels_of_a_wide_image():
    generator = SsdAnchorGenerator(layers=((AnchorShape(0.5, 1.0),),))
    ymin, xmin, ymax, xmax = generator.generate([(1, 1)], image_size=(100, 400))[0]
    assert (ymax - ymin) * 100 == pytest.approx(50)
    assert (xmax - xmin) * 400 == pytest.approx(50)


def test_strides_and_offsets_are_pixels():
    generator = SsdAnchorGenerator(
        layers=((AnchorShape(0.1, 1.0),),), strides=((10, 20),), offsets=((3, 4),)
    )
    anchors = generator.generate([(2, 2)], image_size=(100, 100))
    centres = (anchors[:, :2] + anchors[:, 2:]) / 2
    expected = [[0.03, 0.04], [0.03, 0.24], [0.13, 0.04], [0.13, 0.24]]
    np.testing.assert_allclose(centres, expected, atol=1e-6)


def test_scales_are_spaced_evenly_and_the_last_layer_interpolates_towards_one():
    layers = ssd_layers(3, **{**DEFAULTS, "min_scale": 0.2, "max_scale": 0.8})
    assert [shapes[0].scale for shapes in layers] == pytest.approx([0.2, 0.5, 0.8])
    assert [shapes[-1].scale for shapes in layers] == pytest.approx(
        [math.sqrt(0.2 * 0.5), math.sqrt(0.5 * 0.8), math.sqrt(0.8 * 1.0)]
    )
    assert [len(shapes) for shapes in layers] == [3, 3, 3]


def test_the_lowest_layer_can_be_reduced_to_three_anchors():
    layers = ssd_layers(2, **{**DEFAULTS, "reduce_boxes_in_lowest_layer": True})
    assert layers[0] == (AnchorShape(0.1, 1.0), AnchorShape(0.2, 2.0), AnchorShape(0.2, 0.5))
    assert len(layers[1]) == 3


def test_an_interpolated_ratio_of_zero_leaves_that_anchor_out():
    layers = ssd_layers(2, **{**DEFAULTS, "interpolated_scale_aspect_ratio": 0.0})
    assert [len(shapes) for shapes in layers] == [2, 2]


def test_given_scales_replace_the_even_ones():
    layers = ssd_layers(2, **{**DEFAULTS, "scales": (0.1, 0.3, 0.6)})
    assert [shapes[0].scale for shapes in layers] == [0.1, 0.3]
    assert layers[1][-1].scale == pytest.approx(math.sqrt(0.3 * 0.6))


def test_another_number_of_feature_maps_is_an_error():
    generator = SsdAnchorGenerator(layers=((AnchorShape(0.5, 1.0),),))
    with pytest.raises(ValueError, match="2 feature maps for 1 layers"):
        generator.generate([(1, 1), (2, 2)], image_size=(1, 1))
