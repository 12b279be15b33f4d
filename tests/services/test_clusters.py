"""What ends a process before its time reaches the cluster."""

import pytest

from services.clusters import own_namespace, reporting
from services.trainer.settings import TrainerSettings
from tandem.errors import (
    AttemptSupersededError,
    BucketMissingError,
    ConfigError,
    LabelMapError,
    NonFiniteLossError,
    RecordError,
    RunConflictError,
    StoreRefusedError,
    StoreUnavailableError,
)
from tests.kube.memory_namespace import JOB, MemoryNamespace


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ConfigError("no model"), "BadInput"),
        (LabelMapError("id 9"), "BadData"),
        (RecordError("train.record, record 7"), "BadData"),
        (StoreRefusedError("403"), "StorageFailed"),
        (BucketMissingError("404"), "StorageFailed"),
        (RunConflictError("in use"), "RunConflict"),
        (NonFiniteLossError("step 3"), "TrainingFailed"),
        (AttemptSupersededError("attempt 2"), "Superseded"),
        (StoreUnavailableError("503"), "StorageFailed"),
        (OSError(28, "No space left on device"), "StorageFailed"),
        (RuntimeError("a fault"), "UnexpectedError"),
    ],
)
def test_what_ends_a_process_is_told_as_a_warning_and_raised(error, reason):
    cluster = MemoryNamespace()

    def fail():
        with reporting(cluster, JOB) as reporter:
            reporter.annotate(phase="training")
            raise error

    with pytest.raises(type(error)):
        fail()
    assert cluster.told == [(reason, str(error), 1)]
    assert cluster.annotations["tandem.dev/phase"] == "failed"


def test_a_signal_is_no_failure():
    cluster = MemoryNamespace()

    def leave():
        with reporting(cluster, JOB):
            raise SystemExit(0)

    with pytest.raises(SystemExit):
        leave()
    assert cluster.told == []


def test_without_a_namespace_there_is_no_cluster_and_outside_of_one_that_is_said_once(caplog):
    settings = TrainerSettings(run="r", config="c")
    with own_namespace(settings, component="tandem-trainer") as namespace:
        assert namespace is None
    assert caplog.records == []
    settings = TrainerSettings(run="r", config="c", namespace="research")
    with own_namespace(settings, component="tandem-trainer") as namespace:
        assert namespace is None
    [record] = caplog.records
    assert "going on without the cluster" in record.message
