import numpy as np
import pytest
import tensorflow as tf

from tandem.losses.hard_examples import HardExampleMiner, MinedBy

# Four boxes apart from each other.
APART = np.array([[[i, 0, i + 0.5, 1] for i in range(4)]], np.float32)
NONE = tf.constant([[-1, -1, -1, -1]])


def choose(miner, classification, *, matches=NONE, boxes=APART, localization=None):
    classification = tf.constant([classification], tf.float32)
    if localization is None:
        localization = tf.zeros_like(classification)
    chosen = miner.choose(
        localization=tf.convert_to_tensor(localization, tf.float32),
        classification=classification,
        boxes=tf.constant(boxes),
        matches=tf.constant(matches),
    )
    return np.flatnonzero(chosen[0]).tolist()


def test_the_hardest_examples_are_chosen():
    miner = HardExampleMiner(0.5, MinedBy.CLASSIFICATION, num_hard_examples=2)
    assert choose(miner, [1.0, 4.0, 2.0, 3.0]) == [1, 3]


def test_without_a_limit_all_are_chosen():
    miner = HardExampleMiner(0.5, MinedBy.CLASSIFICATION)
    assert choose(miner, [1.0, 4.0, 2.0, 3.0]) == [0, 1, 2, 3]


def test_hardness_is_the_loss_that_was_asked_for():
    arguments = {"classification": [1.0, 0.0, 0.0, 3.0], "localization": [[0.0, 4.0, 0.0, 2.0]]}
    by = {
        MinedBy.CLASSIFICATION: [3],
        MinedBy.LOCALIZATION: [1],
        MinedBy.BOTH: [3],  # 3 + 2 is more than 0 + 4
    }
    for mined_by, expected in by.items():
        assert choose(HardExampleMiner(0.5, mined_by, num_hard_examples=1), **arguments) == expected
    weighted = HardExampleMiner(
        0.5, MinedBy.BOTH, num_hard_examples=1, classification_weight=0.1, localization_weight=1.0
    )
    assert choose(weighted, **arguments) == [1]


def test_a_near_duplicate_of_a_harder_example_is_left_out():
    boxes = np.array([[[0, 0, 1, 1], [0, 0, 1, 0.9], [5, 5, 6, 6], [0, 0, 1, 0.4]]], np.float32)
    miner = HardExampleMiner(0.5, MinedBy.CLASSIFICATION)
    assert choose(miner, [1.0, 2.0, 3.0, 4.0], boxes=boxes) == [1, 2, 3]


def test_negatives_are_limited_by_the_number_of_positives():
    miner = HardExampleMiner(0.5, MinedBy.CLASSIFICATION, max_negatives_per_positive=1)
    losses = [1.0, 4.0, 2.0, 3.0]
    assert choose(miner, losses, matches=[[-1, -1, 0, -1]]) == [1, 2]
    assert choose(miner, losses, matches=[[0, -1, 1, -1]]) == [0, 1, 2, 3]
    assert choose(miner, losses) == []


def test_an_image_keeps_its_least_number_of_negatives():
    miner = HardExampleMiner(
        0.5, MinedBy.CLASSIFICATION, max_negatives_per_positive=3, min_negatives_per_image=2
    )
    assert choose(miner, [1.0, 4.0, 2.0, 3.0]) == [1, 3]


def test_only_chosen_examples_have_a_gradient(run):
    losses = tf.constant([[1.0, 4.0, 2.0, 3.0]])
    miner = HardExampleMiner(0.5, MinedBy.CLASSIFICATION, num_hard_examples=2)

    def gradient():
        with tf.GradientTape() as tape:
            tape.watch(losses)
            mined = miner.mine(
                localization=10 * losses, classification=losses, boxes=APART, matches=NONE
            )
        return mined, tape.gradient(mined.classification, losses)

    mined, slope = run(gradient)
    assert (mined.classification, mined.localization) == (7.0, 70.0)
    np.testing.assert_array_equal(slope, [[0.0, 1.0, 0.0, 1.0]])


def test_a_loss_that_is_not_a_number_is_not_mined_away():
    miner = HardExampleMiner(0.5, MinedBy.CLASSIFICATION, num_hard_examples=1)
    mined = miner.mine(
        localization=tf.zeros([1, 4]),
        classification=tf.constant([[1.0, np.nan, 2.0, 3.0]]),
        boxes=tf.constant(APART),
        matches=NONE,
    )
    assert np.isnan(mined.classification)


@pytest.mark.parametrize("name", ["ohem", "ssd31", "ssd31_min0", "loc"])
def test_mined_losses_equal_those_of_the_original(name, components, run):
    case, arrays = components.cases[f"hard_example_miner/{name}"], components.arrays
    params = case["params"]
    mined_by = {
        "cls": MinedBy.CLASSIFICATION,
        "loc": MinedBy.LOCALIZATION,
        "both": MinedBy.BOTH,
    }
    miner = HardExampleMiner(
        iou_threshold=params["iou_threshold"],
        mined_by=mined_by[params["loss_type"]],
        num_hard_examples=params["num_hard_examples"],
        max_negatives_per_positive=params.get("max_negatives_per_positive"),
        min_negatives_per_image=params.get("min_negatives_per_image", 0),
        classification_weight=params.get("cls_loss_weight", 1.0),
        localization_weight=params.get("loc_loss_weight", 1.0),
    )
    mined = run(
        lambda boxes: miner.mine(
            localization=tf.constant(arrays[case["loc"]]),
            classification=tf.constant(arrays[case["cls"]]),
            boxes=boxes,
            matches=tf.constant(arrays[case["match"]]),
        ),
        tf.constant(arrays[case["boxes"]]),
    )
    np.testing.assert_allclose(mined.localization, case["mined_loc"], rtol=1e-6)
    np.testing.assert_allclose(mined.classification, case["mined_cls"], rtol=1e-6)
