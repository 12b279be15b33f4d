"""The single-shot detector: feature maps, predictions, losses and detections."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import keras
import tensorflow as tf

from tandem import fields
from tandem.boxes.coders import FasterRcnnBoxCoder
from tandem.boxes.matchers import ArgmaxMatcher
from tandem.boxes.targets import Groundtruth, Targets, assign_targets
from tandem.models.feature_maps import SsdFeatureExtractor
from tandem.models.heads.convolutional import ConvolutionalBoxPredictor
from tandem.models.ssd_losses import Losses, SsdLoss
from tandem.postprocess.detections import Detections, PostProcessor


class Predictions(NamedTuple):
    """Raw outputs for a batch of images."""

    box_encodings: tf.Tensor
    """[batch, num_anchors, 4] float32: codes relative to the anchors."""
    class_logits: tf.Tensor
    """[batch, num_anchors, num_classes + 1] float32; column 0 is background."""
    feature_maps: tuple[tf.Tensor, ...]
    """[batch, height_i, width_i, channels_i] float32 each, finest first."""


@dataclass(frozen=True)
class TargetRules:
    """How ground truth becomes targets.

    Attributes:
        similarity: of boxes [batch, N, 4] and anchors [M, 4] to [batch, N, M].
        box_coder: writes boxes relative to anchors.
        matcher: gives each anchor a box or none.
        background_as_zeros: an unmatched anchor's class target is all zeros instead of one-hot
            background.
        negative_class_weight: weight of an unmatched anchor in the classification loss.
    """

    similarity: Callable[[tf.Tensor, tf.Tensor], tf.Tensor]
    box_coder: FasterRcnnBoxCoder
    matcher: ArgmaxMatcher
    background_as_zeros: bool
    negative_class_weight: float


class SsdModel(keras.layers.Layer):
    """An SSD whose weights all exist once it is constructed.

    A layer and not a ``keras.Model``: training here is a loop of our own, and ``Model`` keeps the
    names ``loss`` and ``compile`` for its.

    Attributes:
        num_classes: classes without background.
        image_size: (height, width) of the model's input.
        anchors: [num_anchors, 4] float32, (ymin, xmin, ymax, xmax), normalised.
        backbone_names: names of the backbone's variables.
    """

    def __init__(
        self,
        *,
        num_classes: int,
        image_size: tuple[int, int],
        anchors: tf.Tensor,
        feature_extractor: SsdFeatureExtractor,
        box_predictor: ConvolutionalBoxPredictor,
        target_rules: TargetRules,
        ssd_loss: SsdLoss,
        post_processor: PostProcessor,
    ) -> None:
        super().__init__(name="ssd")
        self.num_classes = num_classes
        self.image_size = image_size
        self.anchors = anchors
        self.feature_extractor = feature_extractor
        self.box_predictor = box_predictor
        self.backbone_names = frozenset(v.path for v in feature_extractor.backbone.weights)
        self._rules = target_rules
        self._ssd_loss = ssd_loss
        self._post_processor = post_processor
        self.built = True

    def preprocess(self, images: tf.Tensor) -> tf.Tensor:
        """Map resized images [batch, height, width, 3] from [0, 255] to [-1, 1] float32."""
        return tf.cast(images, tf.float32) * (2.0 / 255.0) - 1.0

    def call(self, images: tf.Tensor, training: bool = False) -> Predictions:
        """Predict from preprocessed images.

        Args:
            images: [batch, height, width, 3] float32 in [-1, 1], of ``image_size``.
            training: use batch statistics and dropout, and move the moving statistics.
        """
        maps = self.feature_extractor(images, training=training)
        boxes, classes = self.box_predictor(maps, training=training)
        return Predictions(box_encodings=boxes, class_logits=classes, feature_maps=maps)

    def targets(self, groundtruth: Mapping[str, tf.Tensor]) -> Targets:
        """What each anchor should predict; ground truth as of ``loss``."""
        return assign_targets(
            Groundtruth(
                boxes=groundtruth[fields.BOXES],
                classes=groundtruth[fields.CLASSES],
                weights=groundtruth[fields.WEIGHTS],
                num_boxes=groundtruth[fields.NUM_BOXES],
            ),
            anchors=self.anchors,
            num_classes=self.num_classes,
            similarity=self._rules.similarity,
            matcher=self._rules.matcher,
            box_coder=self._rules.box_coder,
            background_as_zeros=self._rules.background_as_zeros,
            negative_class_weight=self._rules.negative_class_weight,
        )

    def loss(self, predictions: Predictions, groundtruth: Mapping[str, tf.Tensor]) -> Losses:
        """Localisation and classification loss of a batch.

        Args:
            predictions: of the batch.
            groundtruth: by the names of ``tandem.fields``: BOXES [batch, max_boxes, 4] float32
                normalised, CLASSES [batch, max_boxes] int32 zero-based, WEIGHTS
                [batch, max_boxes] float32, NUM_BOXES [batch] int32. Other entries are not used.
        """
        return self._ssd_loss(
            predictions.box_encodings,
            predictions.class_logits,
            targets=self.targets(groundtruth),
            decoded_boxes=self.decode(predictions.box_encodings) if self._ssd_loss.mines else None,
        )

    def regularization_loss(self) -> tf.Tensor:
        """[] float32: penalty on the weights, frozen ones included."""
        terms = [v.regularizer(v.value) for v in self.trainable_variables if v.regularizer]
        return tf.add_n(terms) if terms else tf.constant(0.0)

    def decode(self, box_encodings: tf.Tensor) -> tf.Tensor:
        """Codes [batch, num_anchors, 4] as boxes of the same shape, normalised, not clipped."""
        return self._rules.box_coder.decode(box_encodings, anchors=self.anchors)

    def detect(self, predictions: Predictions, true_sizes: tf.Tensor) -> Detections:
        """Detections, with boxes normalised to each image's content.

        Args:
            predictions: of the batch.
            true_sizes: [batch, 2] int32, (height, width) in pixels of each image's content in the
                resized image, padding excluded.
        """
        window = tf.cast(true_sizes, tf.float32) / tf.constant(self.image_size, tf.float32)
        return self._post_processor(
            self.decode(predictions.box_encodings),
            class_logits=predictions.class_logits,
            clip_window=tf.concat([tf.zeros_like(window), window], axis=-1),
        )
