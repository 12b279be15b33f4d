"""Feature maps beyond the backbone's: each halves the one before (SSD, arXiv:1512.02325)."""

from __future__ import annotations

import keras
import tensorflow as tf

from tandem.models.convolutions import Conv, DepthwiseConv
from tandem.models.hyperparams.params import ConvParams

EXTRA_DEPTHS = (512, 256, 256, 128)
"""Channels of the extra maps before the depth multiplier, as the original's extractors have."""


class SsdFeatureExtractor(keras.layers.Layer):
    """A backbone with two maps, and extra maps on top of the second.

    The extra maps' variables stand in the backbone's scope, as in the original.
    """

    def __init__(
        self,
        backbone: keras.layers.Layer,
        *,
        base_name: str,
        num_maps: int,
        depth_multiplier: float,
        min_depth: int,
        use_depthwise: bool,
        params: ConvParams,
        name: str = "FeatureExtractor",
    ) -> None:
        """Build the extra maps.

        Args:
            backbone: made inside the scope ``name``; has ``out_channels`` of its two maps.
            base_name: the original's name of the second map; begins the extra layers' names.
            num_maps: how many maps to return, those of the backbone included.
            depth_multiplier: factor on EXTRA_DEPTHS.
            min_depth: least channels of any extra layer.
            use_depthwise: make the stride-2 convolution depthwise and 1x1 instead of 3x3.
            params: settings of the extra layers.
            name: scope of the whole extractor.
        """
        super().__init__(name=name)
        self.backbone = backbone
        self.num_maps = num_maps
        channels = list(backbone.out_channels)
        extra = []
        with keras.name_scope(name), keras.name_scope(backbone.name):
            for i, filters in enumerate(EXTRA_DEPTHS[: max(0, num_maps - 2)], start=2):
                halving = Halving(
                    channels[-1],
                    middle=max(int(filters / 2 * depth_multiplier), min_depth),
                    filters=max(int(filters * depth_multiplier), min_depth),
                    use_depthwise=use_depthwise,
                    params=params,
                    base_name=base_name,
                    index=i,
                )
                extra.append(halving)
                channels.append(halving.filters)
        self.extra = tuple(extra)
        self.out_channels = tuple(channels[:num_maps])
        self.built = True

    def map_sizes(self, image_size: tuple[int, int]) -> tuple[tuple[int, int], ...]:
        """(height, width) of every map for images of this size."""
        sizes = [image_size]
        # SAME padding: every convolution of stride 2 rounds up. The backbone's two maps have
        # strides 16 and 32.
        while len(sizes) < 4 + self.num_maps:
            height, width = sizes[-1]
            sizes.append((-(-height // 2), -(-width // 2)))
        return tuple(sizes[4:])

    def call(self, images: tf.Tensor, training: bool = False) -> tuple[tf.Tensor, ...]:
        """Map images [batch, height, width, 3] in [-1, 1] to ``num_maps`` maps, finest first."""
        maps = list(self.backbone(images, training=training))
        for halving in self.extra:
            maps.append(halving(maps[-1], training=training))
        return tuple(maps[: self.num_maps])


class Halving(keras.layers.Layer):
    """A 1x1 convolution to fewer channels, then one of stride 2."""

    def __init__(
        self,
        in_channels: int,
        *,
        middle: int,
        filters: int,
        use_depthwise: bool,
        params: ConvParams,
        base_name: str,
        index: int,
    ) -> None:
        last_name = f"{base_name}_2_Conv2d_{index}_3x3_s2_{filters}"
        super().__init__(name=last_name)
        self.filters = filters
        self.reduce = Conv(
            in_channels,
            filters=middle,
            kernel_size=1,
            params=params,
            name=f"{base_name}_1_Conv2d_{index}_1x1_{middle}",
        )
        self.depthwise = None
        if use_depthwise:
            self.depthwise = DepthwiseConv(
                middle, kernel_size=3, params=params, stride=2, name=last_name + "_depthwise"
            )
        self.last = Conv(
            middle,
            filters=filters,
            kernel_size=1 if use_depthwise else 3,
            params=params,
            stride=1 if use_depthwise else 2,
            name=last_name,
        )
        self.built = True

    def call(self, x: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Map [batch, height, width, in] to [batch, height / 2, width / 2, filters]."""
        x = self.reduce(x, training=training)
        if self.depthwise is not None:
            x = self.depthwise(x, training=training)
        return self.last(x, training=training)
