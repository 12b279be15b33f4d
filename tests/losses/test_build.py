import pytest
from google.protobuf import text_format

from tandem.errors import ConfigError
from tandem.losses.build import build_losses
from tandem.losses.classification import SigmoidFocalLoss, SigmoidLoss
from tandem.losses.hard_examples import HardExampleMiner, MinedBy
from tandem.losses.localization import SmoothL1Loss
from tandem.protos import losses_pb2

PLAIN = """
    classification_loss { weighted_sigmoid {} }
    localization_loss { weighted_smooth_l1 {} }
"""


def build(text):
    return build_losses(text_format.Parse(text, losses_pb2.Loss()))


def test_defaults_are_those_of_the_proto():
    losses = build(PLAIN)
    assert losses.classification == SigmoidLoss()
    assert losses.localization == SmoothL1Loss(delta=1.0)
    assert (losses.classification_weight, losses.localization_weight) == (1.0, 1.0)
    assert losses.hard_example_miner is None


def test_every_setting_reaches_its_loss():
    losses = build("""
        classification_loss { weighted_sigmoid_focal { alpha: 0.75 gamma: 1.5 } }
        localization_loss { weighted_smooth_l1 { delta: 0.5 } }
        classification_weight: 2
        localization_weight: 3
        hard_example_miner {
          num_hard_examples: 30 iou_threshold: 0.5 loss_type: CLASSIFICATION
          max_negatives_per_positive: 3 min_negatives_per_image: 4
        }
    """)
    assert losses.classification == SigmoidFocalLoss(gamma=1.5, alpha=0.75)
    assert losses.localization == SmoothL1Loss(delta=0.5)
    assert (losses.classification_weight, losses.localization_weight) == (2.0, 3.0)
    assert losses.hard_example_miner == HardExampleMiner(
        iou_threshold=0.5,
        mined_by=MinedBy.CLASSIFICATION,
        num_hard_examples=30,
        max_negatives_per_positive=3,
        min_negatives_per_image=4,
        classification_weight=2.0,
        localization_weight=3.0,
    )


def test_an_unset_alpha_is_no_balance_at_all():
    losses = build(PLAIN.replace("weighted_sigmoid {}", "weighted_sigmoid_focal {}"))
    assert losses.classification == SigmoidFocalLoss(gamma=2.0, alpha=None)


def test_zero_hard_examples_or_negatives_mean_no_limit():
    miner = build(PLAIN + "hard_example_miner { num_hard_examples: 0 }").hard_example_miner
    assert miner.num_hard_examples is None
    assert miner.max_negatives_per_positive is None
    assert miner.mined_by is MinedBy.BOTH


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "model.ssd.loss.classification_loss is not set"),
        (
            PLAIN.replace("weighted_sigmoid", "weighted_softmax"),
            "classification_loss.weighted_softmax is not supported; this version has "
            "model.ssd.loss.classification_loss.weighted_sigmoid, ",
        ),
        (
            PLAIN.replace("weighted_smooth_l1", "weighted_l2"),
            "model.ssd.loss.localization_loss.weighted_l2 is not supported",
        ),
        (PLAIN + "random_example_sampler {}", "model.ssd.loss.random_example_sampler is not supp"),
        (PLAIN + "equalization_loss {}", "model.ssd.loss.equalization_loss is not supported"),
        (
            PLAIN + "expected_loss_weights: EXPECTED_SAMPLING",
            "model.ssd.loss.expected_loss_weights: EXPECTED_SAMPLING is not supported",
        ),
        (
            PLAIN.replace("smooth_l1 {}", "smooth_l1 { delta: 0 }"),
            "localization_loss.weighted_smooth_l1.delta is 0",
        ),
        (
            PLAIN.replace("weighted_sigmoid {}", "weighted_sigmoid_focal { gamma: -1 }"),
            "classification_loss.weighted_sigmoid_focal.gamma is -1",
        ),
        (
            PLAIN + "hard_example_miner { iou_threshold: 2 }",
            "hard_example_miner.iou_threshold is 2",
        ),
    ],
)
def test_what_cannot_be_built_is_named_with_its_path(text, message):
    with pytest.raises(ConfigError, match=message):
        build(text)
