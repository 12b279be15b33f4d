"""Snapshots against the synchronous save of the same moment."""

import threading

import numpy as np
import pytest
import tensorflow as tf

from tandem.errors import StoreError
from tandem.training.optimizers import Momentum, MovingAverages
from tandem.training.snapshots import Snapshots
from tandem.training.states import TrainingState, save_tensors


def new_state(shapes=((3, 5), (7,), ()), *, seed=0):
    weights = {
        f"w{i}": tf.Variable(tf.random.stateless_normal(shape, [seed, i]))
        for i, shape in enumerate(shapes)
    }
    return TrainingState(
        model=weights,
        optimizer=Momentum(weights, momentum=0.9),
        averages=MovingAverages.of(weights, decay=0.9),
    )


def step_of(state):
    """A compiled step that changes every variable in place."""

    @tf.function
    def step():
        gradients = [tf.ones_like(v) for v in state.optimizer.variables.values()]
        finished = state.global_step.read_value()
        state.optimizer.apply(gradients, learning_rate=tf.constant(0.1), step=finished)
        state.averages.update(finished)
        state.global_step.assign_add(1)

    return step


def files_at(prefix):
    return {
        path.name[len(prefix.name) :]: path.read_bytes()
        for path in prefix.parent.glob(f"{prefix.name}.*")
    }


@pytest.mark.parametrize(
    "shapes",
    [((3, 5), (7,), ()), ((2000, 3000), (1 << 21,), (2, 0, 3))],
    ids=["small", "so large that threads copy"],
)
def test_a_snapshot_written_after_more_steps_has_the_bytes_of_its_moment(tmp_path, shapes):
    state = new_state(shapes)
    step, snapshots = step_of(state), Snapshots(state.tensors)
    step()
    save_tensors(state.tensors, tmp_path / "then" / "ckpt")
    snapshot = snapshots.take()
    for _ in range(3):
        step()
    snapshot.write(tmp_path / "later" / "ckpt")
    expected = files_at(tmp_path / "then" / "ckpt")
    assert set(expected) == {".index", ".data-00000-of-00001"}
    assert files_at(tmp_path / "later" / "ckpt") == expected


def test_training_on_while_a_snapshot_is_being_written_changes_none_of_its_bytes(tmp_path):
    state = new_state(((500, 1000),) * 8)
    step, snapshots = step_of(state), Snapshots(state.tensors)
    step()
    for save in range(5):
        save_tensors(state.tensors, tmp_path / f"then-{save}" / "ckpt")
        snapshot = snapshots.take()
        writer = threading.Thread(target=snapshot.write, args=(tmp_path / f"{save}" / "ckpt",))
        writer.start()
        while writer.is_alive():
            step()
        writer.join()
        step()
        snapshot.release()
        assert files_at(tmp_path / f"{save}" / "ckpt") == files_at(
            tmp_path / f"then-{save}" / "ckpt"
        )


def test_two_snapshots_that_are_held_at_once_do_not_share_memory(tmp_path):
    state = new_state()
    step, snapshots = step_of(state), Snapshots(state.tensors)
    first = snapshots.take()
    step()
    second = snapshots.take()
    first.write(tmp_path / "first")
    second.write(tmp_path / "second")
    read = [tf.train.load_checkpoint(str(tmp_path / name)) for name in ("first", "second")]
    assert [reader.get_tensor("global_step") for reader in read] == [0, 1]
    np.testing.assert_allclose(
        read[0].get_tensor("w0") - read[1].get_tensor("w0"), np.full((3, 5), 0.1), rtol=1e-5
    )


def test_released_memory_is_used_again(tmp_path):
    state = new_state()
    step, snapshots = step_of(state), Snapshots(state.tensors)
    first = snapshots.take()
    first.release()
    step()
    snapshots.take()
    first.write(tmp_path / "ckpt")  # which nobody should do: it shows whose memory it is
    assert tf.train.load_variable(str(tmp_path / "ckpt"), "global_step") == 1


@pytest.mark.parametrize("dtype", ["float16", "float64", "int32", "uint8", "bool"])
def test_variables_of_every_kind_are_copied(tmp_path, dtype):
    variable = tf.Variable(tf.cast([[1, 0, 3]], dtype))
    Snapshots({"v": variable}).take().write(tmp_path / "ckpt")
    saved = tf.train.load_variable(str(tmp_path / "ckpt"), "v")
    assert saved.dtype == dtype
    assert saved.tolist() == variable.numpy().tolist()


def test_files_that_can_not_be_written_are_an_error_of_the_store(tmp_path):
    (tmp_path / "ckpt.index").mkdir()
    with pytest.raises(StoreError, match="can't be written"):
        Snapshots(new_state().tensors).take().write(tmp_path / "ckpt")


def test_training_is_the_same_with_a_snapshot_at_every_step_and_without():
    with_saves, without = new_state(seed=3), new_state(seed=3)
    step, snapshots = step_of(with_saves), Snapshots(with_saves.tensors)
    for _ in range(4):
        step()
        snapshots.take().release()
    other = step_of(without)
    for _ in range(4):
        other()
    for name, variable in with_saves.tensors.items():
        np.testing.assert_array_equal(variable.numpy(), without.tensors[name].numpy())
