"""Saving on a real local store with a state of two variables."""

from dataclasses import replace

import pytest
import tensorflow as tf
from prometheus_client import CollectorRegistry

from services.trainer.saving import Saver, remove_leftovers, scratch_prefix
from tandem.checkpoints.claims import claim_attempt
from tandem.checkpoints.commits import read_commit
from tandem.checkpoints.lines import read_line
from tandem.checkpoints.names import CheckpointId, EvalSet
from tandem.checkpoints.opening import open_store
from tandem.checkpoints.retention import RetentionPolicy
from tandem.checkpoints.retiring import Retirer
from tandem.errors import AttemptSupersededError
from tandem.telemetry.metrics import TrainerMetrics
from tandem.training.optimizers import Momentum
from tandem.training.states import TrainingState, resume


@pytest.fixture
def store(tmp_path):
    return open_store(str(tmp_path / "run"))


def new_state(value=1.0):
    weights = {"w": tf.Variable([value, value])}
    return TrainingState(model=weights, optimizer=Momentum(weights, momentum=0.9))


def claim(store, owner="me"):
    return claim_attempt(
        store,
        owner=owner,
        holder=f"{owner}/1",
        image="test",
        config_text="",
        config_digest="d",
        config_diff=lambda before: (),
    )


def saver_of(store, tmp_path, state, attempt, **policy):
    registry = CollectorRegistry()
    scratch = tmp_path / "run"
    scratch.mkdir(exist_ok=True)
    saver = Saver(
        store,
        attempt,
        state,
        retirer=Retirer(
            store, attempt, policy=RetentionPolicy(**policy), eval_sets=[EvalSet("", "abc")]
        ),
        metrics=TrainerMetrics(registry),
        scratch=scratch,
        batch_size=8,
        samples_before=100,
        seconds_before=50.0,
        monotonic=iter(range(1000)).__next__,
    )
    return saver, registry


def test_a_save_commits_the_step_and_what_it_cost(store, tmp_path):
    state = new_state()
    saver, registry = saver_of(store, tmp_path, state, claim(store))
    state.global_step.assign(3)
    saver.save()
    commit = read_commit(store, CheckpointId(3, 1))
    assert commit.samples_seen == 100 + 3 * 8
    assert commit.training_seconds > 50.0
    assert saver.committed_step == 3
    assert registry.get_sample_value("tandem_ckpt_saves_total", {"outcome": "ok"}) == 1
    assert registry.get_sample_value("tandem_ckpt_last_commit_step") == 3


def test_plain_tensorflow_finds_and_reads_what_was_saved(store, tmp_path):
    state = new_state(5.0)
    saver, _ = saver_of(store, tmp_path, state, claim(store))
    state.global_step.assign(3)
    saver.save()
    prefix = tf.train.latest_checkpoint(str(tmp_path / "run" / "checkpoints"))
    fresh = new_state(0.0)
    resume(fresh, prefix)
    assert fresh.step == 3
    assert fresh.model["w"].numpy().tolist() == [5.0, 5.0]


def test_a_step_is_committed_once(store, tmp_path):
    state = new_state()
    saver, _ = saver_of(store, tmp_path, state, claim(store))
    state.global_step.assign(3)
    saver.save()
    saver.save()
    assert read_line(store).checkpoints == (CheckpointId(3, 1),)


def test_nothing_is_left_of_the_files_under_way(store, tmp_path):
    state = new_state()
    saver, _ = saver_of(store, tmp_path, state, claim(store))
    saver.save()
    assert not list((tmp_path / "run").glob(".saving*"))


def test_files_under_way_of_killed_attempts_are_removed_and_no_others(tmp_path):
    for attempt in (1, 2, 3):
        (tmp_path / f"{scratch_prefix(attempt)}x").mkdir()
    remove_leftovers(tmp_path, 3)
    assert [path.name for path in tmp_path.iterdir()] == [f"{scratch_prefix(3)}x"]


def test_the_newest_are_kept_and_the_others_retired(store, tmp_path):
    state = new_state()
    saver, _ = saver_of(store, tmp_path, state, claim(store), max_to_keep=2, max_unevaluated=0)
    for step in (1, 2, 3, 4):
        state.global_step.assign(step)
        saver.save()
    assert [checkpoint.step for checkpoint in read_line(store).checkpoints] == [3, 4]


def test_a_superseded_attempt_commits_nothing(store, tmp_path):
    state = new_state()
    first = claim(store)
    saver, registry = saver_of(store, tmp_path, state, first)
    claim(store)
    state.global_step.assign(3)
    with pytest.raises(AttemptSupersededError):
        saver.save()
    assert read_line(store).checkpoints == ()
    assert registry.get_sample_value("tandem_ckpt_saves_total", {"outcome": "error"}) == 1


def test_a_resumed_step_counts_as_committed(store, tmp_path):
    state = new_state()
    saver, _ = saver_of(store, tmp_path, state, claim(store))
    state.global_step.assign(3)
    saver.save()
    second = claim(store)
    assert second.resumed_from == CheckpointId(3, 1)
    again, _ = saver_of(store, tmp_path, replace(state), second)
    again.save()
    assert read_line(store).checkpoints == (CheckpointId(3, 1),)
