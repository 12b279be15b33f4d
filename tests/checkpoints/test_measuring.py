"""What an observer is told, on every backend; `test_gcs_faults` has requests that are repeated."""

import pytest

from tandem.checkpoints.measuring import (
    MeasuredStore,
    RecentRequests,
    outcome_of,
    principal_of,
    unobserved,
)
from tandem.checkpoints.opening import open_store
from tandem.errors import (
    CheckpointDamagedError,
    ConfigError,
    GenerationMismatchError,
    ObjectExistsError,
    ObjectNotFoundError,
    StoreError,
    StoreUnavailableError,
)


class Told:
    def __init__(self):
        self.all = []

    def __call__(self, operation, outcome, seconds):
        assert seconds is None or seconds >= 0
        self.all.append((operation, outcome))

    def take(self):
        taken, self.all = self.all, []
        return taken


@pytest.fixture
def told():
    return Told()


@pytest.fixture
def measured(backend, new_store, told):
    if backend == "gcs":
        return new_store("measured", observer=told)
    return MeasuredStore(new_store("measured"), told)


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (None, "ok"),
        (ObjectExistsError("x"), "precondition"),
        (GenerationMismatchError("x"), "precondition"),
        (ObjectNotFoundError("x"), "missing"),
        (ConfigError("no permission"), "refused"),
        (StoreUnavailableError("503"), "error"),
        (StoreError("400"), "error"),
        (CheckpointDamagedError("other bytes"), "error"),
        (OSError(28, "no space"), "error"),
        (KeyError("the caller's own"), None),
        (KeyboardInterrupt(), None),
    ],
)
def test_an_outcome_is_told_by_our_own_errors(error, outcome):
    assert outcome_of(error) == outcome


def test_each_operation_is_told_of_with_its_outcome(measured, told, tmp_path):
    stat = measured.create("a.json", b"1")
    with pytest.raises(ObjectExistsError):
        measured.create("a.json", b"2")
    assert told.take() == [("create", "ok"), ("create", "precondition")]

    with pytest.raises(GenerationMismatchError):
        measured.replace("a.json", b"3", generation="7")
    stat = measured.replace("a.json", b"3", generation=stat.generation)
    assert told.take() == [("replace", "precondition"), ("replace", "ok")]

    assert measured.get("a.json").data == b"3"
    assert measured.read("a.json", start=0, size=1) == b"3"
    assert measured.read("a.json", start=9, size=1) == b""
    assert measured.stat("a.json") == stat
    assert measured.generation("a.json") == stat.generation
    assert measured.list_times("")["a.json"] > 0
    assert measured.list("") == ["a.json"]
    assert told.take() == [
        *(("get", "ok"), ("read", "ok"), ("read", "ok")),
        *(("stat", "ok"), ("stat", "ok"), ("list", "ok"), ("list", "ok")),
    ]
    with pytest.raises(ObjectNotFoundError):
        measured.get("b.json")
    assert told.take() == [("get", "missing")]

    (tmp_path / "file").write_bytes(b"45")
    measured.create_from_file("b.bin", tmp_path / "file")
    measured.download("b.bin", tmp_path / "copy")
    assert ("upload", "ok") in told.all
    assert told.take()[-1] == ("download", "ok")

    measured.delete("a.json", generation=stat.generation)
    assert told.take() == [("delete", "ok")]


def test_a_caller_that_ends_an_upload_is_no_failure_of_the_store(measured, told, tmp_path):
    (tmp_path / "file").write_bytes(b"45")

    def give_up(size):
        raise KeyError("another one is more urgent")

    with pytest.raises(KeyError):
        measured.create_from_file("b.bin", tmp_path / "file", on_bytes=give_up)
    assert told.take() == []


def test_only_an_observed_local_store_is_measured(tmp_path, told):
    assert not isinstance(open_store(str(tmp_path / "run")), MeasuredStore)
    assert not isinstance(open_store(str(tmp_path / "run"), observer=unobserved), MeasuredStore)
    store = open_store(str(tmp_path / "run"), observer=told)
    store.create("a.json", b"1")
    assert told.take() == [("create", "ok")]
    assert store.local_path("a.json") == tmp_path / "run" / "a.json"
    assert store.location == open_store(str(tmp_path / "run")).location
    assert principal_of(store) is None


def test_the_account_is_told_once_somebody_knows_it(new_gcs_store):
    store = new_gcs_store("principal")

    class Credentials:
        service_account_email = "default"  # as on a machine of Google's before its first request

    known = Credentials()
    store._client = type("Client", (), {"_credentials": known})()
    assert principal_of(store) is None
    known.service_account_email = "trainer@project.iam.gserviceaccount.com"
    assert principal_of(store) == "trainer@project.iam.gserviceaccount.com"


def test_five_minutes_are_remembered():
    now = [0.0]
    requests = RecentRequests(monotonic=lambda: now[0])
    assert requests.view() == (0, 0, None, None)
    for number in range(100):
        requests("get", "ok", float(number))
    requests("create", "precondition", 200.0)
    now[0] = 200.0
    requests("list", "refused", 300.0)
    requests("list", "error", 400.0)
    requests("upload", "error", None)
    requests("upload", "ok", 9999.0)
    view = requests.view()
    assert (view.num_requests, view.num_errors) == (105, 3)
    assert (view.p50_seconds, view.p99_seconds) == (51.0, 300.0)
    now[0] = 301.0
    assert requests.view() == (4, 3, 400.0, 400.0)
    now[0] = 501.0
    assert requests.view() == (0, 0, None, None)


def test_of_very_many_the_newest_are_remembered():
    requests = RecentRequests(monotonic=lambda: 0.0)
    for number in range(5000):
        requests("get", "ok", float(number))
    assert requests.view().num_requests == 4096
