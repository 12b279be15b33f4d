"""Which tensor goes where: tables, no TensorFlow."""

import pytest

from tandem.errors import FineTuneError
from tandem.training.restore_plans import (
    FineTuneType,
    SkippedVariable,
    check_plan,
    plan_restore,
)

BACKBONE = "FeatureExtractor/Net/Conv/weights"
EXTRA = "FeatureExtractor/Net/extra/weights"
HEAD = "BoxPredictor_0/ClassPredictor/weights"
MODEL = {HEAD: (1, 1, 8, 6), BACKBONE: (3, 3, 3, 8), EXTRA: (1, 1, 8, 4)}
NAMES = frozenset([BACKBONE])


def plan(checkpoint, fine_tune_type=FineTuneType.DETECTION, *, load_all=False):
    return plan_restore(
        MODEL,
        checkpoint,
        backbone=NAMES,
        fine_tune_type=fine_tune_type,
        load_all_detection_vars=load_all,
    )


def check(made, fine_tune_type=FineTuneType.DETECTION):
    check_plan(made, prefix="m.ckpt", backbone=NAMES, fine_tune_type=fine_tune_type)


def test_detection_takes_the_feature_extractor_only():
    made = plan(MODEL)
    assert made.sources == {BACKBONE: BACKBONE, EXTRA: EXTRA}
    assert made.not_wanted == (HEAD,)
    assert made.unused == (HEAD,)


def test_load_all_takes_the_predictor_too():
    made = plan(MODEL, load_all=True)
    assert made.sources == {name: name for name in MODEL}
    assert (made.skipped, made.missing, made.not_wanted, made.unused) == ((), (), (), ())


def test_another_shape_is_skipped_and_named_with_both():
    made = plan({**MODEL, HEAD: (1, 1, 8, 273)}, load_all=True)
    assert made.skipped == (SkippedVariable(HEAD, (1, 1, 8, 6), (1, 1, 8, 273)),)
    assert HEAD not in made.sources
    assert made.unused == ()
    check(made)


def test_what_the_checkpoint_lacks_is_missing():
    made = plan({BACKBONE: MODEL[BACKBONE]})
    assert made.missing == (EXTRA,)
    check(made)


def test_classification_maps_names_without_the_extractors_scope():
    made = plan({"Net/Conv/weights": (3, 3, 3, 8), "Net/Logits/weights": (8, 1000)},
                FineTuneType.CLASSIFICATION)  # fmt: skip
    assert made.sources == {BACKBONE: "Net/Conv/weights"}
    assert made.unused == ("Net/Logits/weights",)
    assert made.not_wanted == (HEAD, EXTRA)


def test_slots_averages_and_counters_are_listed_apart():
    made = plan(
        {
            **MODEL,
            f"{BACKBONE}/Momentum": MODEL[BACKBONE],
            f"{BACKBONE}/RMSProp_1": MODEL[BACKBONE],
            f"{BACKBONE}/ExponentialMovingAverage": MODEL[BACKBONE],
            "global_step": (),
            "other": (2,),
        }
    )
    assert made.slots == (f"{BACKBONE}/Momentum", f"{BACKBONE}/RMSProp_1")
    assert made.averages == (f"{BACKBONE}/ExponentialMovingAverage",)
    assert made.bookkeeping == ("global_step",)
    assert made.unused == (HEAD, "other")


def test_a_backbone_of_another_width_is_refused_with_both_shapes():
    with pytest.raises(FineTuneError) as caught:
        check(plan({**MODEL, BACKBONE: (3, 3, 3, 16)}))
    assert "0 of 1 variables fit" in str(caught.value)
    assert "(model [3, 3, 3, 8], checkpoint [3, 3, 3, 16])" in str(caught.value)
    assert "depth_multiplier" in str(caught.value)


@pytest.mark.parametrize(
    ("checkpoint", "fine_tune_type", "advice"),
    [
        ({"FeatureExtractor/Other/weights": (1,)}, FineTuneType.DETECTION,
         "another feature extractor: mend model.ssd.feature_extractor.type"),
        ({"Net/Conv/weights": (3, 3, 3, 8)}, FineTuneType.DETECTION, '"classification"'),
        (MODEL, FineTuneType.CLASSIFICATION, 'fine_tune_checkpoint_type: "detection"'),
        ({"something": (1,)}, FineTuneType.CLASSIFICATION, "None of its names fit"),
    ],
)  # fmt: skip
def test_an_uncovered_backbone_is_refused_with_advice(checkpoint, fine_tune_type, advice):
    with pytest.raises(FineTuneError, match=r"doesn't cover the backbone") as caught:
        check(plan(checkpoint, fine_tune_type), fine_tune_type)
    assert BACKBONE in str(caught.value)
    assert advice in str(caught.value)


def test_full_takes_everything():
    made = plan(MODEL, FineTuneType.FULL)
    assert made.sources == {name: name for name in MODEL}
    check(made, FineTuneType.FULL)


def test_full_with_another_number_of_classes_is_refused_naming_the_head():
    made = plan({**MODEL, HEAD: (1, 1, 8, 273)}, FineTuneType.FULL)
    with pytest.raises(FineTuneError, match=r"ClassPredictor.*num_classes") as caught:
        check(made, FineTuneType.FULL)
    assert "2 of 3 variables fit" in str(caught.value)


def test_full_refuses_a_missing_extra_layer():
    made = plan({BACKBONE: MODEL[BACKBONE], HEAD: MODEL[HEAD]}, FineTuneType.FULL)
    with pytest.raises(FineTuneError, match=r"1 missing: FeatureExtractor/Net/extra"):
        check(made, FineTuneType.FULL)
