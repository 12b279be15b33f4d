"""What a look at a run folder finds, on disk and in a bucket."""

import os
import time

import pytest

from services.ctl.status.hurrying import Hurry
from services.ctl.status.looking import look_at
from tandem.checkpoints.attempts import Outcome, end_attempt
from tandem.checkpoints.heartbeats import Heartbeat
from tandem.checkpoints.ledger import record_entry
from tandem.checkpoints.lines import read_line
from tandem.checkpoints.local import LocalStore
from tandem.checkpoints.names import CheckpointId
from tandem.checkpoints.opening import open_store
from tandem.checkpoints.retiring import Retirer
from tandem.status.facts import Access
from tests.checkpoints.actors import entry
from tests.rig.gcs import BUCKET, running_gcs, unique
from tests.services.ctl.store.example_run import SETS, make_example_run


def _look(location, *, seconds=5.0):
    with Hurry(seconds=seconds) as hurry:
        return look_at(str(location), hurry)


def _age(path, seconds):
    then = time.time() - seconds
    os.utime(path, (then, then))


def test_a_look_finds_attempts_checkpoints_and_numbers(folder):
    facts = _look(folder)

    assert facts.access is None
    assert [(a.number, a.outcome) for a in facts.attempts] == [(1, None), (2, None)]
    assert facts.attempt.resumed_step == 6000
    assert (facts.trainer.step, facts.trainer.phase, facts.trainer.attempt) == (8640, "training", 2)
    assert facts.checkpoints.newest_step == 8000
    assert facts.checkpoints.num_pending == 3  # 6000, 7000, 8000
    assert len(facts.checkpoints.damaged) == 1
    assert "ckpt-6000-1.index" in facts.checkpoints.damaged[0]
    day, night = facts.eval_sets
    assert (day.name, day.num_pending, day.num_tries) == ("validation", 3, 2)
    assert (day.last.step, day.last.value) == (5000, pytest.approx(0.362))
    assert (day.best.step, day.best.value, day.best.is_on_disk) == (
        4000,
        pytest.approx(0.371),
        True,
    )
    assert (night.num_tries, night.failed_step) == (0, None)  # a newer one was scored
    assert facts.checkpoints.unreadable == ()


def test_ages_are_by_the_clock_of_the_store_and_not_by_the_writers(folder):
    """The example's writers say that it is January."""
    _age(folder / "heartbeats/trainer.json", 25)
    _age(folder / "checkpoints/ckpt-8000-2.commit.json", 500)
    _age(folder / "checkpoints/ckpt-6000-1.commit.json", 1500)
    facts = _look(folder)

    assert facts.trainer.age_seconds == pytest.approx(25, abs=3)
    assert facts.checkpoints.newest_age_seconds == pytest.approx(500, abs=3)
    assert facts.checkpoints.oldest_pending_age_seconds == pytest.approx(1500, abs=3)
    assert abs(facts.trainer.clock_ahead_seconds) > 86400


def test_where_this_machines_clock_is_behind_the_newest_word_is_now(folder):
    with Hurry(seconds=5) as hurry:
        facts = look_at(str(folder), hurry, wall_clock=lambda: time.time() - 7200)

    assert facts.trainer.age_seconds < 5
    assert facts.clock_behind_seconds == pytest.approx(7200, abs=60)


def test_a_heartbeat_of_an_attempt_before_is_not_the_trainers(folder, store):
    end_attempt(store, read_line(store).newest_attempt, outcome=Outcome.PREEMPTED)
    record = folder / "attempts/0002.json"
    later = folder / "attempts/0003.json"
    later.write_bytes(record.read_bytes())
    Heartbeat(LocalStore(folder), "trainer", attempt=3).beat("training", 8700)
    later.unlink()

    assert _look(folder).trainer is None


def test_a_heartbeat_under_another_name_is_nobodys(folder):
    beat = folder / "heartbeats/trainer.json"
    beat.rename(folder / "heartbeats/zz.json")

    assert _look(folder).trainer is None


def test_what_the_newest_checkpoint_lacks_is_told(folder):
    (folder / "checkpoints/ckpt-8000-2.index").unlink()
    (folder / "run.json").unlink()
    found = _look(folder).checkpoints

    assert found.incomplete == ("checkpoints/ckpt-8000-2.index",)
    assert found.unreadable == ("run.json is missing",)


def test_a_newest_commit_that_cannot_be_read_is_noted(folder):
    (folder / "checkpoints/ckpt-8000-2.commit.json").write_text("{}")

    assert "ckpt-8000-2.commit" in _look(folder).checkpoints.unreadable[0]


def test_a_watchdogs_word_goes_with_its_process(folder, store):
    Heartbeat(store, "watchdog-trainer", attempt=2).beat(
        "hanging", 8640, at="waiting for data", silent_seconds=75.0, stack="records.py:1 read"
    )
    hang = _look(folder).trainer.hang
    assert (hang.place, hang.silent_seconds) == ("waiting for data", pytest.approx(75, abs=3))

    Heartbeat(store, "watchdog-trainer", attempt=2).beat("recovered", 8640)
    assert _look(folder).trainer.hang is None


def test_an_entry_that_cannot_be_read_is_noted_and_the_others_count(folder):
    [path] = (folder / "evaluations/validation").glob("4000-1-*.json")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    facts = _look(folder)

    assert len(facts.checkpoints.unreadable) == 1
    assert path.name in facts.checkpoints.unreadable[0]
    assert facts.eval_sets[0].best.step == 5000  # there is no projection here that knows better


def test_the_best_of_long_ago_is_known_by_its_projection(tmp_path):
    store = LocalStore(tmp_path / "run")
    make_example_run(store, tmp_path / "scratch")
    from tandem.checkpoints.bests import write_best  # noqa: PLC0415

    write_best(
        store,
        entry(CheckpointId(500, 1), metric=0.6, eval_set=SETS[0]),
        metric="DetectionBoxes_Precision/mAP",
    )
    best = _look(tmp_path / "run").eval_sets[0].best

    assert (best.step, best.value, best.is_on_disk) == (500, pytest.approx(0.6), False)


def test_a_run_whose_checkpoints_are_retired_meanwhile_is_still_looked_at(folder, store):
    attempt = read_line(store).newest_attempt
    for eval_set in SETS:
        for step, number in ((6000, 1), (7000, 2), (8000, 2)):
            record_entry(store, entry(CheckpointId(step, number), metric=0.3, eval_set=eval_set))
    Retirer(store, attempt).run_pass()

    assert _look(folder).checkpoints.num_pending == 0


def test_what_is_no_run_is_said_in_words(tmp_path):
    assert _look(tmp_path / "gone").access.kind is Access.NO_RUN
    assert "does not exist" in _look(tmp_path / "gone").access.text
    assert "is empty" in _look(tmp_path).access.text


def test_a_folder_that_may_not_be_read_is_refused(folder, monkeypatch):
    monkeypatch.setattr(os, "scandir", _forbidden)

    assert _look(folder).access.kind is Access.REFUSED


def _forbidden(*_):
    raise PermissionError(13, "Permission denied")


def test_a_damaged_record_of_an_attempt_is_said(folder):
    (folder / "attempts/0001.json").write_bytes(b"{}")

    assert _look(folder).access.kind is Access.DAMAGED


@pytest.fixture(scope="module")
def server():
    with running_gcs() as running:
        yield running


@pytest.fixture
def bucket_run(server, tmp_path, monkeypatch):
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)
    location = f"gs://{BUCKET}/{unique('run')}"
    make_example_run(open_store(location), tmp_path / "scratch")
    yield location
    server.put_faults()


def test_a_bucket_tells_the_same_as_a_folder(bucket_run, folder):
    here, there = _look(folder), _look(bucket_run)

    assert there.trainer.step == here.trainer.step
    assert there.checkpoints.damaged == here.checkpoints.damaged
    assert [s.num_pending for s in there.eval_sets] == [s.num_pending for s in here.eval_sets]
    assert there.trainer.age_seconds < 60


@pytest.mark.parametrize(
    ("fault", "seconds", "kind"),
    [
        ({"status": 403}, 20.0, Access.REFUSED),
        ({"status": 503}, 20.0, Access.UNAVAILABLE),
        ({"delay": 4.0}, 1.5, Access.SLOW),  # who waited for the answer would find the run
    ],
)
def test_a_bucket_in_trouble_is_told_apart(bucket_run, server, fault, seconds, kind):
    server.put_faults({"match": "", "times": None, **fault})
    access = _look(bucket_run, seconds=seconds).access

    assert access.kind is kind
    assert bucket_run in access.text


def test_one_503_is_no_trouble(bucket_run, server):
    server.put_faults({"match": "", "times": 1, "status": 503})

    assert _look(bucket_run).access is None


def test_a_missing_bucket_is_told_from_an_empty_one(server, monkeypatch):
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)

    assert _look("gs://no-such-bucket/run").access.kind is Access.MISSING
    assert _look(f"gs://{BUCKET}/{unique('empty')}").access.kind is Access.NO_RUN
