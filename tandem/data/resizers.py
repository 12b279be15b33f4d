"""Resizing an image to what the model takes, sampled as the original samples it.

The original resizes with TensorFlow 1's kernels: pixel centres at whole numbers, corners not
aligned. The kernels of today's `tf.image.resize` shift the image by up to half a pixel and would
move every feature.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

import tensorflow as tf


class ResizeMethod(enum.Enum):
    """How pixels are sampled."""

    BILINEAR = "bilinear"
    NEAREST_NEIGHBOR = "nearest_neighbor"
    BICUBIC = "bicubic"
    AREA = "area"


@dataclass(frozen=True)
class FixedShapeResizer:
    """Stretches every image to one size, whatever its aspect ratio.

    Attributes:
        height: of the result, in pixels.
        width: of the result, in pixels.
        method: sampling.
        grayscale: the result has one channel, ITU-R BT.601 luma of the three.
    """

    height: int
    width: int
    method: ResizeMethod = ResizeMethod.BILINEAR
    grayscale: bool = False

    @property
    def num_channels(self) -> int:
        """Channels of the result."""
        return 1 if self.grayscale else 3

    def resize(self, image: tf.Tensor) -> tf.Tensor:
        """Resizes one image.

        Args:
            image: [height, width, 3] uint8 or float32, in [0, 255].

        Returns:
            [self.height, self.width, self.num_channels] float32. Bicubic sampling overshoots the
            range a little, as in the original.
        """
        resized = _resize(image[tf.newaxis], [self.height, self.width], method=self.method)[0]
        resized.set_shape([self.height, self.width, 3])
        return tf.image.rgb_to_grayscale(resized) if self.grayscale else resized

    def true_size(self) -> tf.Tensor:
        """[2] int32: size of the image's content in the result; all of it."""
        return tf.constant([self.height, self.width], tf.int32)


def _resize(images: tf.Tensor, size: list[int], *, method: ResizeMethod) -> tf.Tensor:
    raw = tf.raw_ops
    if method is ResizeMethod.BILINEAR:
        return raw.ResizeBilinear(images=images, size=size)
    if method is ResizeMethod.BICUBIC:
        return raw.ResizeBicubic(images=images, size=size)
    if method is ResizeMethod.AREA:
        return raw.ResizeArea(images=images, size=size)
    return tf.cast(raw.ResizeNearestNeighbor(images=images, size=size), tf.float32)
