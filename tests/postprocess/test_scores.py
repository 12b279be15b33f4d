import numpy as np
import pytest
import tensorflow as tf
from scipy import special

from tandem.postprocess.scores import ScoreConverter, ScoreFunction

LOGITS = np.array([[-3.0, 0.0, 2.0], [10.0, 10.0, -10.0]], np.float32)


@pytest.mark.parametrize(
    ("function", "reference"),
    [
        (ScoreFunction.IDENTITY, lambda x: x),
        (ScoreFunction.SIGMOID, special.expit),
        (ScoreFunction.SOFTMAX, lambda x: special.softmax(x, axis=-1)),
    ],
)
@pytest.mark.parametrize("logit_scale", [1.0, 2.0])
def test_scores_equal_scipys_of_the_divided_logits(function, reference, logit_scale):
    found = ScoreConverter(function, logit_scale=logit_scale)(tf.constant(LOGITS))
    np.testing.assert_allclose(found, reference(LOGITS / logit_scale), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", ["IDENTITY", "SIGMOID", "SOFTMAX", "SIGMOID_s2", "SOFTMAX_s2"])
def test_scores_equal_those_of_the_original(name, components, run):
    case, arrays = components.cases[f"score_converter/{name}"], components.arrays
    function, *scaled = name.split("_")
    converter = ScoreConverter(ScoreFunction[function], logit_scale=2.0 if scaled else 1.0)
    found = run(converter, tf.constant(arrays[case["logits"]]))
    np.testing.assert_allclose(found, arrays[case["out"]], atol=1e-6)
