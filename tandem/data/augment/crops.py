"""SSD's random crop (Liu et al., https://arxiv.org/abs/1512.02325, section 2.2).

One of several crop operations is drawn, each with its own demand on how much of some object the
crop has to show. A crop that meets it is searched by trial; when none is found the whole image is
the crop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import tensorflow as tf

from tandem import fields
from tandem.boxes import geometry
from tandem.data.augment.steps import PER_BOX, Example

_MAX_ATTEMPTS = 100  # as the original


@dataclass(frozen=True)
class CropOperation:
    """How to crop.

    Attributes:
        min_object_covered: the crop contains at least this fraction of at least one box.
        aspect_ratio_range: least and greatest width / height of the crop, in pixels.
        area_range: least and greatest area of the crop, as a fraction of the image's.
        overlap_thresh: a box of which less than this fraction lies in the crop is dropped.
        random_coef: probability of leaving the example as it is.
        clip_boxes: boxes are cut at the crop's edge.
    """

    min_object_covered: float = 0.0
    aspect_ratio_range: tuple[float, float] = (0.5, 2.0)
    area_range: tuple[float, float] = (0.1, 1.0)
    overlap_thresh: float = 0.0
    random_coef: float = 0.15
    clip_boxes: bool = True


# The original's seven, from the paper's table of least overlaps.
SSD_CROP_OPERATIONS = tuple(
    CropOperation(min_object_covered=coverage, overlap_thresh=coverage)
    for coverage in (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
)


@dataclass(frozen=True)
class SsdRandomCrop:
    """Crops by an operation drawn evenly from several.

    Attributes:
        operations: at least one.
    """

    operations: tuple[CropOperation, ...] = SSD_CROP_OPERATIONS

    def apply(self, example: Example, *, seed: tf.Tensor) -> Example:
        """Crops, or returns the example as it is."""
        operations = self.operations
        draw_seed, keep_seed, window_seed = tf.unstack(tf.random.split(seed, 3))
        drawn = tf.random.stateless_uniform([], draw_seed, 0, len(operations), tf.int32)
        random_coef = _of(drawn, [operation.random_coef for operation in operations])
        crops = tf.random.stateless_uniform([], keep_seed) >= random_coef
        varying = (fields.IMAGE, fields.NUM_BOXES, *PER_BOX)

        def cropped() -> Example:
            begin, size = _window(example, operations=operations, drawn=drawn, seed=window_seed)
            return crop(
                {key: example[key] for key in varying},
                begin=begin,
                size=size,
                overlap_thresh=_of(drawn, [op.overlap_thresh for op in operations]),
                clip_boxes=_of(drawn, [op.clip_boxes for op in operations]),
            )

        return example | tf.cond(crops, cropped, lambda: {key: example[key] for key in varying})


def crop(
    example: Example,
    *,
    begin: tf.Tensor,
    size: tf.Tensor,
    overlap_thresh: tf.Tensor | float,
    clip_boxes: tf.Tensor | bool = True,
) -> Example:
    """Cuts a window out of an example and drops the boxes that lie mostly outside.

    Args:
        example: IMAGE, NUM_BOXES and the per-box keys.
        begin: [2] int32, the window's first row and column.
        size: [2] int32, its height and width in pixels.
        overlap_thresh: least fraction of a kept box's area inside; one wholly outside never stays.
        clip_boxes: cut the kept boxes at the window's edge.

    Returns:
        The same keys.
    """
    image_size = tf.cast(tf.shape(example[fields.IMAGE])[:2], tf.float32)
    corners = tf.cast(tf.concat([begin, begin + size], axis=0), tf.float32)
    window = corners / tf.tile(image_size, [2])
    boxes = example[fields.BOXES]
    inside = geometry.intersection_over_area(boxes, window[tf.newaxis])[:, 0]
    kept = (inside > 0) & (inside >= overlap_thresh)
    result = {key: tf.boolean_mask(example[key], kept) for key in PER_BOX}
    boxes = geometry.change_coordinate_frame(result[fields.BOXES], window)
    return result | {
        fields.BOXES: tf.where(clip_boxes, tf.clip_by_value(boxes, 0.0, 1.0), boxes),
        fields.NUM_BOXES: tf.reduce_sum(tf.cast(kept, tf.int32)),
        fields.IMAGE: tf.slice(
            example[fields.IMAGE], [begin[0], begin[1], 0], [size[0], size[1], -1]
        ),
    }


def _of(drawn: tf.Tensor, values: Sequence[float] | Sequence[bool]) -> tf.Tensor:
    return tf.gather(tf.constant(values), drawn)


def _window(
    example: Example, *, operations: Sequence[CropOperation], drawn: tf.Tensor, seed: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Searches a window; (begin [2] int32, size [2] int32)."""
    coverage = _of(drawn, [operation.min_object_covered for operation in operations])
    ranges = [(operation.aspect_ratio_range, operation.area_range) for operation in operations]
    distinct = sorted(set(ranges))  # the kernel takes ranges as constants: one branch for each

    def search(
        aspect_ratio_range: tuple[float, float], area_range: tuple[float, float]
    ) -> tf.Tensor:
        begin, size, _ = tf.image.stateless_sample_distorted_bounding_box(
            tf.shape(example[fields.IMAGE]),
            tf.clip_by_value(example[fields.BOXES], 0.0, 1.0)[tf.newaxis],
            seed=seed,
            min_object_covered=coverage,
            aspect_ratio_range=aspect_ratio_range,
            area_range=area_range,
            max_attempts=_MAX_ATTEMPTS,
            use_image_if_no_bounding_boxes=True,
        )
        return tf.stack([begin[:2], size[:2]])

    branches = [lambda pair=pair: search(*pair) for pair in distinct]
    numbers = tf.constant([distinct.index(pair) for pair in ranges])
    begin, size = tf.unstack(tf.switch_case(tf.gather(numbers, drawn), branches))
    return begin, size
