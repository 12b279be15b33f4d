import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tandem.boxes.matchers import IGNORED, UNMATCHED, ArgmaxMatcher

HALF = ArgmaxMatcher(matched_threshold=0.5)
FORCING = ArgmaxMatcher(matched_threshold=0.5, force_match_for_each_row=True)
SETTINGS = {
    "m55": HALF,
    "m55_force": FORCING,
    "m73": ArgmaxMatcher(
        matched_threshold=0.7, unmatched_threshold=0.3, force_match_for_each_row=True
    ),
    "m73_inv": ArgmaxMatcher(
        matched_threshold=0.7, unmatched_threshold=0.3, negatives_lower_than_unmatched=False
    ),
    "ignore": ArgmaxMatcher(matched_threshold=None, force_match_for_each_row=True),
}


def match(matcher, similarity, *, valid=None, forceable=None):
    similarity = tf.constant(similarity, tf.float32)
    valid = tf.ones(similarity.shape[:-1], tf.bool) if valid is None else tf.constant(valid)
    forceable = None if forceable is None else tf.constant(forceable)
    return matcher.match(similarity, valid=valid, forceable=forceable).numpy().tolist()


def test_an_anchor_gets_its_most_similar_box_from_the_threshold_on():
    assert match(HALF, [[0.5, 0.49, 0.6], [0.1, 0.0, 0.9]]) == [0, UNMATCHED, 1]


def test_an_anchor_between_the_thresholds_is_ignored():
    matcher = ArgmaxMatcher(matched_threshold=0.7, unmatched_threshold=0.3)
    assert match(matcher, [[0.7, 0.69, 0.3, 0.29]]) == [0, IGNORED, IGNORED, UNMATCHED]


def test_the_background_can_lie_between_the_thresholds():
    matcher = SETTINGS["m73_inv"]
    assert match(matcher, [[0.7, 0.69, 0.3, 0.29]]) == [0, UNMATCHED, UNMATCHED, IGNORED]


def test_without_a_threshold_every_anchor_is_matched():
    matcher = ArgmaxMatcher(matched_threshold=None)
    assert match(matcher, [[0.0, 0.1], [0.2, 0.0]]) == [1, 0]


def test_of_equal_similarities_the_lower_box_wins():
    assert match(HALF, [[0.8], [0.8]]) == [0]


def test_each_box_is_forced_on_its_best_anchor():
    assert match(FORCING, [[0.1, 0.2, 0.0], [0.0, 0.3, 0.4]]) == [UNMATCHED, 0, 1]


def test_forcing_overrules_a_better_match():
    # Anchor 0 is the best of box 1, and box 0 would match it by threshold.
    assert match(FORCING, [[0.9, 0.95], [0.3, 0.2]]) == [1, 0]


def test_of_two_boxes_forced_on_one_anchor_the_lower_wins():
    assert match(FORCING, [[0.3, 0.1], [0.4, 0.1]]) == [0, UNMATCHED]


def test_a_box_with_nothing_near_is_forced_on_the_first_anchor():
    assert match(FORCING, [[0.0, 0.0, 0.0]]) == [0, UNMATCHED, UNMATCHED]


def test_a_box_that_may_not_be_forced_still_matches_by_threshold():
    similarity = [[0.2, 0.8], [0.3, 0.0]]
    assert match(FORCING, similarity, forceable=[True, False]) == [UNMATCHED, 0]
    assert match(FORCING, similarity, forceable=[False, True]) == [1, 0]


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("garbage", [0.99, np.nan, np.inf, -np.inf])
def test_padding_never_matches_whatever_it_holds(name, garbage):
    similarity = np.random.default_rng(0).uniform(size=(2, 3, 9)).astype(np.float32)
    padded = np.concatenate([similarity, np.full((2, 4, 9), garbage, np.float32)], axis=1)
    valid = np.arange(7) < [[3], [3]]
    assert match(SETTINGS[name], padded, valid=valid) == match(SETTINGS[name], similarity)


@pytest.mark.parametrize("name", SETTINGS)
def test_an_image_without_boxes_has_only_unmatched_anchors(name):
    similarity = np.random.default_rng(0).uniform(size=(2, 3, 5))
    valid = np.array([[True, True, True], [False, False, False]])
    assert match(SETTINGS[name], similarity, valid=valid)[1] == [UNMATCHED] * 5


@pytest.mark.parametrize("name", SETTINGS)
def test_a_batch_is_matched_image_by_image(name):
    similarity = np.random.default_rng(1).uniform(size=(4, 3, 20))
    expected = [match(SETTINGS[name], image) for image in similarity]
    assert match(SETTINGS[name], similarity) == expected


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 6), st.integers(1, 30), st.integers(0, 2**32 - 1))
def test_matches_are_those_of_a_loop_over_anchors(num_boxes, num_anchors, seed):
    # Few distinct values, so that ties are common.
    similarity = np.random.default_rng(seed).integers(0, 5, (num_boxes, num_anchors)) / 4
    expected = []
    for column in similarity.T:
        best = int(np.argmax(column))
        expected.append(best if column[best] >= 0.5 else UNMATCHED)
    for row in reversed(range(num_boxes)):
        expected[int(np.argmax(similarity[row]))] = row
    assert match(FORCING, similarity) == expected


@pytest.mark.parametrize("num_rows", [None, 0])
def test_the_number_of_boxes_may_be_zero(num_rows, components):
    signature = [tf.TensorSpec([num_rows, 7]), tf.TensorSpec([num_rows], tf.bool)]
    function = tf.function(
        lambda s, v: FORCING.match(s, valid=v, forceable=v), input_signature=signature
    )
    found = function(tf.zeros([0, 7]), tf.zeros([0], tf.bool))
    np.testing.assert_array_equal(found, components.arrays["match/empty"])


@pytest.mark.parametrize("name", SETTINGS)
def test_matches_equal_those_of_the_original(name, components, run):
    case, arrays = components.cases[f"matcher/{name}"], components.arrays
    similarity = tf.constant(arrays["match/similarity"])
    matcher, valid = SETTINGS[name], tf.ones([5], tf.bool)
    found = run(lambda s: matcher.match(s, valid=valid), similarity)
    np.testing.assert_array_equal(found, arrays[case["match_results"]])
    forceable = tf.constant([True, True, False, True, True])
    found = run(lambda s: matcher.match(s, valid=valid, forceable=forceable), similarity)
    np.testing.assert_array_equal(found, arrays[case["valid_rows_row2_false"]])
