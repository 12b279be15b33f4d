"""One optimisation step on a small real model."""

import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import text_format

from tandem import fields
from tandem.errors import ConfigError
from tandem.models.build import build_model
from tandem.training.build import build_state, build_step_options, settings_without_effect
from tandem.training.steps import StepOptions, TrainingStep


def changed(config, text):
    copy = type(config)()
    copy.CopyFrom(config)
    return text_format.Merge(text, copy)


def trainer(model, config):
    state = build_state(config.train_config, model)
    return state, TrainingStep(model, state, build_step_options(config.train_config))


@pytest.fixture(scope="module")
def shared_step(small_config):
    """A compiled step for tests that look at one step and don't mind earlier ones."""
    return trainer(build_model(small_config.model), small_config)


def values(tensors):
    return {name: variable.numpy().copy() for name, variable in tensors.items()}


def test_the_loss_falls_on_a_batch_that_is_seen_again_and_again(small_model, small_config, batch):
    state, step = trainer(small_model, small_config)
    losses = [float(step(batch, 0.02).total_loss) for _ in range(40)]
    assert losses[-1] < 0.5 * losses[0]
    assert state.step == 40


def test_a_seeded_run_has_the_same_losses_to_the_bit(small_config, batch):
    def run():
        tf.keras.utils.set_random_seed(5)
        _, step = trainer(build_model(small_config.model), small_config)
        return [float(step(batch, 0.02).total_loss) for _ in range(3)]

    assert run() == run()


def test_the_total_is_the_sum_of_its_parts(shared_step, batch):
    _, step = shared_step
    result = step(batch, 0.0)
    parts = result.localization_loss + result.classification_loss + result.regularization_loss
    assert float(result.total_loss) == pytest.approx(float(parts), rel=1e-6)
    assert float(result.regularization_loss) > 0


def test_regularisation_can_be_left_out(small_model, small_config, batch):
    state = build_state(small_config.train_config, small_model)
    step = TrainingStep(small_model, state, StepOptions(add_regularization=False))
    result = step(batch, 0.0)
    assert float(result.regularization_loss) == 0.0


def test_a_step_that_is_not_finite_changes_no_weight_and_no_slot(shared_step, batch):
    state, step = shared_step
    step(batch, 0.01)
    finished = state.step
    trained = {**state.optimizer.variables, **state.optimizer.slot_tensors}
    before = values(trained)
    images = batch[fields.IMAGE].numpy()
    images[0, 0, 0, 0] = np.nan
    result = step({**batch, fields.IMAGE: tf.constant(images)}, 0.01)
    assert not bool(result.finite)
    assert state.step == finished
    for name, value in values(trained).items():
        np.testing.assert_array_equal(value, before[name], err_msg=name)


def test_padding_of_any_content_changes_nothing(shared_step, batch):
    _, step = shared_step
    boxes = batch[fields.BOXES].numpy()
    boxes[:, 1:] = 0.5
    first = step(batch, 0.0)
    second = step({**batch, fields.BOXES: tf.constant(boxes)}, 0.0)
    assert float(first.classification_loss) == float(second.classification_loss)
    assert float(first.localization_loss) == float(second.localization_loss)


def test_frozen_variables_stay_bit_identical_and_the_others_move(small_model, small_config, batch):
    config = changed(
        small_config, 'train_config { freeze_variables: "FeatureExtractor/MobilenetV2/" }'
    )
    state, step = trainer(small_model, config)
    trainable = {v.path: v.value for v in small_model.trainable_variables}
    before = values(trainable)
    for _ in range(3):
        step(batch, 0.1)
    moved = {name for name, v in values(trainable).items() if not np.array_equal(v, before[name])}
    assert moved
    assert moved <= set(state.optimizer.variables)
    assert not any(name.startswith("FeatureExtractor/MobilenetV2/") for name in moved)


def test_freezing_everything_is_refused(small_model, small_config):
    config = changed(small_config, 'train_config { freeze_variables: ".*" }')
    with pytest.raises(ConfigError, match="leave nothing to train"):
        build_state(config.train_config, small_model)


def test_a_pattern_that_matches_nothing_is_refused(small_model, small_config):
    config = changed(small_config, 'train_config { freeze_variables: "Featureextractor" }')
    with pytest.raises(ConfigError, match="matches none of"):
        build_state(config.train_config, small_model)


def test_clipping_scales_the_step_down_to_the_norm(small_model, small_config, batch):
    state = build_state(small_config.train_config, small_model)
    step = TrainingStep(small_model, state, StepOptions(clip_norm=0.01))
    before = values(state.optimizer.variables)
    result = step(batch, 1.0)
    after = values(state.optimizer.variables)
    moved = np.sqrt(sum(np.sum((after[name] - before[name]) ** 2.0) for name in before))
    assert float(result.gradient_norm) > 0.01
    assert moved == pytest.approx(0.01, rel=1e-3)


def test_averages_start_as_the_weights_of_the_first_step(small_model, small_config, batch):
    config = changed(
        small_config,
        "train_config { optimizer { use_moving_average: true moving_average_decay: 0.5 } }",
    )
    state, step = trainer(small_model, config)
    step(batch, 0.1)
    first = values(state.optimizer.variables)
    step(batch, 0.1)
    second = values(state.optimizer.variables)
    name = next(iter(first))
    np.testing.assert_allclose(
        state.averages.averages[name], (first[name] + second[name]) / 2, rtol=1e-5
    )


@pytest.mark.parametrize(
    "field",
    ["bias_grad_multiplier: 2", "merge_multiple_label_boxes: true", "use_bfloat16: true"],
)
def test_what_can_not_be_honoured_is_refused_by_name(small_model, small_config, field):
    config = changed(small_config, f"train_config {{ {field} }}")
    with pytest.raises(ConfigError, match=f"train_config.{field.partition(':')[0]}"):
        build_state(config.train_config, small_model)


def test_what_changes_nothing_is_said_with_its_reason(small_config):
    config = changed(small_config, "train_config { sync_replicas: true }")
    assert settings_without_effect(config.train_config) == [
        "train_config.sync_replicas: one process trains"
    ]
