"""A run's `checkpoints/` is a plain TensorFlow checkpoint folder, on a disk and in a bucket."""

import json
import subprocess
import sys

import pytest
import tensorflow as tf

from tandem.checkpoints.commits import commit_checkpoint
from tandem.checkpoints.gcs import GcsStore
from tandem.checkpoints.local import LocalStore
from tandem.checkpoints.policies import RetentionPolicy
from tests.checkpoints.actors import FakeClock, Trainer
from tests.rig.gcs import BUCKET, unique
from tests.rig.gcs_proxy import tensorflow_environment

# In a process of its own: TensorFlow reads the environment once.
LOOK = """
import json, sys
import tensorflow as tf
folder = sys.argv[1]
latest = tf.train.latest_checkpoint(folder)
state = tf.train.get_checkpoint_state(folder)
variable = tf.Variable(0, dtype=tf.int64)
checkpoint = tf.train.Checkpoint(step=variable)
manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=1)
manager_restored = manager.restore_or_initialize(), int(variable)
restored = []
for path in state.all_model_checkpoint_paths:
    tf.train.Checkpoint(step=variable).read(path).assert_consumed()
    restored.append(int(variable))
print("FOUND", json.dumps({
    "latest": latest,
    "state": [state.model_checkpoint_path, *state.all_model_checkpoint_paths],
    "manager_latest": manager.latest_checkpoint,
    "manager_restored": manager_restored,
    "manager_may_delete": manager.checkpoints,
    "restored": restored,
    "read": int(tf.train.load_checkpoint(folder).get_tensor("step/.ATTRIBUTES/VARIABLE_VALUE")),
    "variables": [name for name, _ in tf.train.list_variables(latest)],
}))
"""


class _Trainer(Trainer):
    """Commits what TensorFlow itself writes."""

    def commit(self, step, *, store=None):
        prefix = self.folder / f"saved-{step}"
        tf.train.Checkpoint(step=tf.Variable(step, dtype=tf.int64)).write(str(prefix))
        return commit_checkpoint(
            store or self.store,
            self.attempt,
            step=step,
            local_prefix=prefix,
            config_digest="c0",
            samples_seen=step,
            training_seconds=1.0,
            surroundings=self.clock.surroundings,
        ).checkpoint


@pytest.fixture(params=["local", "gcs"])
def run(request, tmp_path):
    """A store, and the environment in which TensorFlow reaches it."""
    if request.param == "local":
        yield LocalStore(tmp_path / "run"), {}
        return
    server = request.getfixturevalue("gcs_server")
    client = request.getfixturevalue("gcs_client")
    with tensorflow_environment(server.url, tmp_path) as environment:
        yield GcsStore(BUCKET, unique("run"), client=client), environment


def _look(folder, environment):
    assignments = [f"{key}={value}" for key, value in environment.items()]
    ended = subprocess.run(
        ["env", *assignments, sys.executable, "-c", LOOK, folder], capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    line = next(line for line in ended.stdout.splitlines() if line.startswith("FOUND "))
    return json.loads(line.removeprefix("FOUND "))


def test_plain_tensorflow_finds_what_was_committed_and_not_retired(run, tmp_path):
    store, environment = run
    policy = RetentionPolicy(max_to_keep=2, max_unevaluated=0)
    trainer = _Trainer(store, FakeClock(), tmp_path / "scratch", policy=policy, sets=())
    for step in (5, 10, 15):
        trainer.save(step)
    trainer.commit(20)  # and killed before it wrote the state file
    trainer.retire()
    folder = f"{store.location}/checkpoints"
    found = _look(folder, environment)
    newest, before = f"{folder}/ckpt-20-1", f"{folder}/ckpt-15-1"
    assert found == {
        "latest": newest,
        "state": [newest, before, newest],
        "manager_latest": newest,
        "manager_restored": [newest, 20],
        "manager_may_delete": [],
        "restored": [15, 20],
        "read": 20,
        "variables": ["_CHECKPOINTABLE_OBJECT_GRAPH", "step/.ATTRIBUTES/VARIABLE_VALUE"],
    }
