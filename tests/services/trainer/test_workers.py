import json

import pytest

from services.trainer.workers import refuse_several_workers
from tandem.errors import ConfigError


@pytest.mark.parametrize(
    "tf_config",
    [None, "", "{}", json.dumps({"cluster": {"worker": ["a:1"]}, "task": {"index": 0}})],
)
def test_one_process_may_train(tf_config):
    refuse_several_workers(tf_config)


def test_several_processes_are_refused_naming_what_to_change():
    cluster = {"chief": ["a:1"], "worker": ["b:1", "c:1"]}
    with pytest.raises(ConfigError, match=r"names 3 processes.*trainer\.workers to 1"):
        refuse_several_workers(json.dumps({"cluster": cluster}))


@pytest.mark.parametrize("tf_config", ["{", "[]", '{"cluster": [1]}', '{"cluster": {"worker": 2}}'])
def test_what_tensorflow_could_not_read_is_refused(tf_config):
    with pytest.raises(ConfigError, match="TF_CONFIG is"):
        refuse_several_workers(tf_config)
