"""The convolutional box predictor: boxes and classes from each feature map by its own weights."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

import keras
import tensorflow as tf

from tandem.models.convolutions import Conv, DepthwiseConv
from tandem.models.hyperparams.params import ConvParams


@dataclass(frozen=True)
class HeadParams:
    """Settings of a convolutional box predictor.

    Attributes:
        num_class_slots: class scores of one anchor, background included.
        box_code_size: numbers that encode one box.
        kernel_size: of the predicting convolution.
        use_depthwise: predict by a depthwise convolution and a 1x1 one (SSDLite).
        num_layers_before_predictor: 1x1 convolutions shared by boxes and classes.
        min_depth: least channels of those.
        max_depth: most channels of those; 0 leaves them out.
        class_bias: start of the class scores' biases. The original forgets it when
            ``use_depthwise`` is set; here it always holds.
        dropout_rate: share of features dropped before the classes in training.
        sigmoid_scores: return probabilities instead of logits.
        box_clip_range: (least, most) of a box code, or None.
        conv: settings of the hidden convolutions; the last ones are linear, with biases.
    """

    num_class_slots: int
    box_code_size: int
    kernel_size: int
    use_depthwise: bool
    num_layers_before_predictor: int
    min_depth: int
    max_depth: int
    class_bias: float
    dropout_rate: float
    sigmoid_scores: bool
    box_clip_range: tuple[float, float] | None
    conv: ConvParams


class ConvolutionalBoxPredictor(keras.layers.Layer):
    """One head per feature map, in scopes ``BoxPredictor_0`` and so on."""

    def __init__(
        self,
        in_channels: Sequence[int],
        *,
        num_anchors: Sequence[int],
        params: HeadParams,
    ) -> None:
        """Build the heads.

        Args:
            in_channels: channels of each feature map.
            num_anchors: anchors at each location of each feature map.
            params: settings common to all heads.
        """
        super().__init__(name="BoxPredictor")
        single = len(in_channels) == 1
        heads = []
        for i, (channels, anchors) in enumerate(zip(in_channels, num_anchors, strict=True)):
            # The original opens no scope for a lone feature map.
            with nullcontext() if single else keras.name_scope(f"BoxPredictor_{i}"):
                heads.append(MapHead(channels, num_anchors=anchors, params=params))
        self.heads = tuple(heads)
        self.built = True

    def call(
        self, feature_maps: tuple[tf.Tensor, ...], training: bool = False
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Predict from all maps.

        Args:
            feature_maps: [batch, height_i, width_i, channels_i] float32 each.
            training: use batch statistics and dropout.

        Returns:
            Box codes [batch, num_anchors, box_code_size] and class scores
            [batch, num_anchors, num_class_slots], anchors in the order of the maps.
        """
        pairs = [
            head(feature_map, training=training)
            for head, feature_map in zip(self.heads, feature_maps, strict=True)
        ]
        boxes, classes = zip(*pairs, strict=True)
        return tf.concat(boxes, axis=1), tf.concat(classes, axis=1)


class MapHead(keras.layers.Layer):
    """Boxes and classes from one feature map."""

    def __init__(self, in_channels: int, *, num_anchors: int, params: HeadParams) -> None:
        super().__init__(name="MapHead")
        self.params = params
        depth = max(min(in_channels, params.max_depth), params.min_depth)
        shared, channels = [], in_channels
        for i in range(params.num_layers_before_predictor if depth else 0):
            name = f"Conv2d_{i}_1x1_{depth}"
            shared.append(
                Conv(channels, filters=depth, kernel_size=1, params=params.conv, name=name)
            )
            channels = depth
        self.shared = tuple(shared)
        self.boxes = Branch(
            channels,
            filters=num_anchors * params.box_code_size,
            params=params,
            bias_value=0.0,
            name="BoxEncodingPredictor",
        )
        self.classes = Branch(
            channels,
            filters=num_anchors * params.num_class_slots,
            params=params,
            bias_value=params.class_bias,
            name="ClassPredictor",
        )
        self.built = True

    def call(self, x: tf.Tensor, training: bool = False) -> tuple[tf.Tensor, tf.Tensor]:
        """Map [batch, height, width, channels] to codes and scores of its anchors."""
        for conv in self.shared:
            x = conv(x, training=training)
        boxes = _per_anchor(self.boxes(x, training=training), self.params.box_code_size)
        if self.params.box_clip_range is not None:
            boxes = tf.clip_by_value(boxes, *self.params.box_clip_range)
        if training and self.params.dropout_rate:
            x = tf.nn.dropout(x, self.params.dropout_rate)
        classes = _per_anchor(self.classes(x, training=training), self.params.num_class_slots)
        return boxes, tf.sigmoid(classes) if self.params.sigmoid_scores else classes


class Branch(keras.layers.Layer):
    """The predicting convolution, in SSDLite with a depthwise one before it."""

    def __init__(
        self, in_channels: int, *, filters: int, params: HeadParams, bias_value: float, name: str
    ) -> None:
        super().__init__(name=name)
        self.depthwise = None
        if params.use_depthwise:
            self.depthwise = DepthwiseConv(
                in_channels,
                kernel_size=params.kernel_size,
                params=params.conv,
                name=f"{name}_depthwise",
            )
        self.last = Conv(
            in_channels,
            filters=filters,
            kernel_size=1 if params.use_depthwise else params.kernel_size,
            params=replace(params.conv, batch_norm=None, activation=None),
            bias_value=bias_value,
            name=name,
        )
        self.built = True

    def call(self, x: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Map [batch, height, width, in] to [batch, height, width, filters]."""
        if self.depthwise is not None:
            x = self.depthwise(x, training=training)
        return self.last(x, training=training)


def _per_anchor(x: tf.Tensor, size: int) -> tf.Tensor:
    """[batch, height, width, anchors * size] as [batch, height * width * anchors, size]."""
    num_anchors = x.shape[1] * x.shape[2] * (x.shape[3] // size)
    return tf.reshape(x, (-1, num_anchors, size))
