"""Anchors: the fixed boxes from which an SSD's predictions are offsets."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]


class AnchorShape(NamedTuple):
    """One anchor at each point of a feature map."""

    scale: float
    """Square root of the anchor's area, as a share of the image's shorter side."""
    aspect_ratio: float
    """Width over height."""


@dataclass(frozen=True)
class SsdAnchorGenerator:
    """Anchors of several feature maps, each with its own shapes (Liu et al., arXiv 1512.02325)."""

    layers: tuple[tuple[AnchorShape, ...], ...]
    """Shapes of each feature map, from the finest map to the coarsest."""
    base_size: tuple[float, float] = (1.0, 1.0)
    """(height, width) that scales multiply, as a share of the image's shorter side."""
    strides: tuple[tuple[float, float], ...] | None = None
    """(y, x) pixels between the points of each map; None divides the image evenly."""
    offsets: tuple[tuple[float, float], ...] | None = None
    """(y, x) pixels of each map's first point; None is half a stride."""

    @property
    def num_anchors_per_location(self) -> tuple[int, ...]:
        """Anchors at each point, one number per feature map."""
        return tuple(len(shapes) for shapes in self.layers)

    def generate(
        self, feature_map_shapes: Sequence[tuple[int, int]], *, image_size: tuple[int, int]
    ) -> FloatArray:
        """Anchors of all feature maps, in the order of the box predictor's outputs.

        Args:
            feature_map_shapes: (height, width) of each map, as many as `layers`.
            image_size: (height, width) of the model's input in pixels.

        Returns:
            [num_anchors, 4] float32, (ymin, xmin, ymax, xmax), normalised: map by map, and in a map
            by row, column, shape. Anchors at the border reach outside of [0, 1].
        """
        if len(feature_map_shapes) != len(self.layers):
            raise ValueError(
                f"{len(feature_map_shapes)} feature maps for {len(self.layers)} layers of anchors"
            )
        image = np.asarray(image_size, np.float32)
        # Scales are shares of the shorter side: a square anchor is square in pixels.
        base = np.asarray(self.base_size, np.float32) * (image.min() / image)
        strides = self._strides(feature_map_shapes, image)
        offsets = self._offsets(strides, image)
        layers = zip(feature_map_shapes, self.layers, strides, offsets, strict=True)
        return np.concatenate([_grid(*layer, base) for layer in layers])

    def _strides(
        self, feature_map_shapes: Sequence[tuple[int, int]], image: FloatArray
    ) -> list[FloatArray]:
        if self.strides is None:
            return [np.float32(1) / np.asarray(shape, np.float32) for shape in feature_map_shapes]
        return [np.asarray(stride, np.float32) / image for stride in self.strides]

    def _offsets(self, strides: list[FloatArray], image: FloatArray) -> list[FloatArray]:
        if self.offsets is None:
            return [np.float32(0.5) * stride for stride in strides]
        return [np.asarray(offset, np.float32) / image for offset in self.offsets]


def ssd_layers(
    num_layers: int,
    *,
    min_scale: float,
    max_scale: float,
    scales: Sequence[float],
    aspect_ratios: Sequence[float],
    interpolated_scale_aspect_ratio: float,
    reduce_boxes_in_lowest_layer: bool,
) -> tuple[tuple[AnchorShape, ...], ...]:
    """Shapes of each layer by the SSD paper's rule, as the Object Detection API applies it.

    Args:
        num_layers: feature maps; at least 2 unless `scales` is given.
        min_scale: scale of the finest map.
        max_scale: scale of the coarsest map; those between are spaced evenly.
        scales: one per map instead of `min_scale` and `max_scale`; empty for the even spacing.
        aspect_ratios: width over height of the anchors at each point.
        interpolated_scale_aspect_ratio: aspect ratio of one more anchor per point, with a scale
            between this map's and the next one's; 0 leaves it out.
        reduce_boxes_in_lowest_layer: the finest map has three anchors per point instead.
    """
    own = list(scales) or _even_scales(num_layers, min_scale, max_scale)
    # The coarsest map interpolates towards the whole image.
    pairs = list(itertools.pairwise([*own, 1.0]))[:num_layers]
    layers = []
    for layer, (scale, next_scale) in enumerate(pairs):
        if layer == 0 and reduce_boxes_in_lowest_layer:
            # The literals are the API's: a small square and two flat shapes.
            shapes = [AnchorShape(0.1, 1.0), AnchorShape(scale, 2.0), AnchorShape(scale, 0.5)]
        else:
            shapes = [AnchorShape(scale, ratio) for ratio in aspect_ratios]
            if interpolated_scale_aspect_ratio > 0:
                between = math.sqrt(scale * next_scale)
                shapes.append(AnchorShape(between, interpolated_scale_aspect_ratio))
        layers.append(tuple(shapes))
    return tuple(layers)


def _even_scales(num_layers: int, min_scale: float, max_scale: float) -> list[float]:
    step = (max_scale - min_scale) / (num_layers - 1)
    return [min_scale + step * layer for layer in range(num_layers)]


def _grid(
    feature_map_shape: tuple[int, int],
    shapes: tuple[AnchorShape, ...],
    stride: FloatArray,
    offset: FloatArray,
    base: FloatArray,
) -> FloatArray:
    height, width = feature_map_shape
    y = np.arange(height, dtype=np.float32) * stride[0] + offset[0]
    x = np.arange(width, dtype=np.float32) * stride[1] + offset[1]
    scales, ratios = np.asarray(shapes, np.float32).reshape(-1, 2).T
    root = np.sqrt(ratios)
    half = np.float32(0.5) * np.stack([scales / root * base[0], scales * root * base[1]], axis=-1)
    centres = np.stack(np.meshgrid(y, x, indexing="ij"), axis=-1)[:, :, np.newaxis, :]
    return np.concatenate([centres - half, centres + half], axis=-1).reshape(-1, 4)
