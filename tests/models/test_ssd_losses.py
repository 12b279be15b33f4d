"""Weighting and normalising of the two losses, by hand."""

from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf

from tandem.boxes.targets import Targets
from tandem.losses.build import DetectionLosses
from tandem.losses.classification import SigmoidLoss
from tandem.losses.hard_examples import HardExampleMiner, MinedBy
from tandem.losses.localization import SmoothL1Loss
from tandem.models.ssd_losses import SsdLoss

LOSSES = DetectionLosses(
    classification=SigmoidLoss(),
    localization=SmoothL1Loss(),
    classification_weight=1.0,
    localization_weight=1.0,
    hard_example_miner=None,
)
PLAIN = SsdLoss(LOSSES, normalize_by_matches=False, normalize_by_code_size=False)

CODES = tf.constant([[[3.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], [9.0, 9.0, 9.0, 9.0]]])
LOGITS = tf.zeros((1, 3, 2))
TARGETS = Targets(
    box_targets=tf.zeros((1, 3, 4)),
    box_weights=tf.constant([[1.0, 2.0, 0.0]]),
    class_targets=tf.constant([[[0.0, 1.0], [0.0, 1.0], [0.0, 0.0]]]),
    class_weights=tf.constant([[[1.0], [2.0], [1.0]]]),
    matches=tf.constant([[0, 1, -1]]),
)
LOCALIZATION = 2.5 + 2.0 * 0.5
"""Huber of 3 is 2.5, of 1 is 0.5."""
CLASSIFICATION = (1.0 + 2.0 + 1.0) * 2 * np.log(2.0)
"""Two columns of logit 0."""


def loss(settings, **changes):
    return settings(CODES, LOGITS, targets=TARGETS._replace(**changes), decoded_boxes=BOXES)


BOXES = tf.constant([[[0.0, 0.0, 0.1, 0.1], [0.5, 0.5, 0.6, 0.6], [0.8, 0.8, 0.9, 0.9]]])


def test_without_normalising_both_are_plain_sums():
    result = loss(PLAIN)
    assert float(result.localization) == pytest.approx(LOCALIZATION)
    assert float(result.classification) == pytest.approx(CLASSIFICATION)


def test_the_normaliser_is_the_weight_of_matched_anchors():
    result = loss(replace(PLAIN, normalize_by_matches=True))
    assert float(result.localization) == pytest.approx(LOCALIZATION / 3.0)
    assert float(result.classification) == pytest.approx(CLASSIFICATION / 3.0)


def test_a_batch_without_a_match_is_divided_by_one():
    result = loss(replace(PLAIN, normalize_by_matches=True), box_weights=tf.zeros((1, 3)))
    assert float(result.localization) == 0.0
    assert float(result.classification) == pytest.approx(CLASSIFICATION)


def test_the_code_size_divides_localisation_only():
    result = loss(replace(PLAIN, normalize_by_code_size=True))
    assert float(result.localization) == pytest.approx(LOCALIZATION / 4.0)
    assert float(result.classification) == pytest.approx(CLASSIFICATION)


def test_weights_multiply():
    weighted = replace(LOSSES, classification_weight=3.0, localization_weight=0.5)
    result = loss(replace(PLAIN, losses=weighted))
    assert float(result.localization) == pytest.approx(LOCALIZATION * 0.5)
    assert float(result.classification) == pytest.approx(CLASSIFICATION * 3.0)


def test_a_miner_leaves_only_the_hardest_anchors():
    miner = HardExampleMiner(
        iou_threshold=0.5, mined_by=MinedBy.CLASSIFICATION, num_hard_examples=1
    )
    settings = replace(PLAIN, losses=replace(LOSSES, hard_example_miner=miner))
    result = loss(settings)
    assert settings.mines
    assert float(result.localization) == pytest.approx(1.0)
    assert float(result.classification) == pytest.approx(2.0 * 2 * np.log(2.0))
