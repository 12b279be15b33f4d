import itertools
import re

import pytest

from tandem.checkpoints.attempts import Outcome, end_attempt
from tandem.checkpoints.collecting import collect
from tandem.checkpoints.heartbeats import TRAINER, Heartbeat
from tandem.checkpoints.ledger import EntryOutcome, read_entries
from tandem.checkpoints.lines import read_line
from tandem.checkpoints.names import CheckpointId
from tandem.checkpoints.pins import pin
from tandem.checkpoints.policies import RetentionPolicy
from tandem.checkpoints.records import encode
from tandem.checkpoints.state_file import paths_named
from tandem.errors import AttemptSupersededError, RunConflictError
from tests.checkpoints.actors import VAL, Evaluator, Trainer, claim
from tests.checkpoints.hooked_store import HookedStore

UNHELD = "not kept by the retention policy"
BUT_GCS = pytest.mark.parametrize(
    "backend",
    ["memory", "local", pytest.param("gcs", marks=pytest.mark.slow)],
    indirect=True,
)
"""Too many operations for the emulated bucket in an ordinary run."""


def _snapshot(store):
    return {name: store.get(name).data for name in store.list("")}


def _named(store):
    return paths_named(store.get("checkpoints/checkpoint").data.decode())


@pytest.fixture
def gc(store, clock):
    """Runs a cleaning; what it says while waiting is in `gc.said`."""

    def run(*, on=store, **options):
        return collect(on, on_wait=run.said.append, surroundings=clock.surroundings, **options)

    run.said = []
    return run


def _finished(new_trainer, *, steps=(1, 2, 3), **kwargs):
    trainer = new_trainer(**kwargs)
    for step in steps:
        trainer.save(step)
    trainer.finish(steps[-1])
    return trainer


def test_it_does_what_the_policy_of_the_ended_attempt_says(store, gc, new_trainer, new_evaluator):
    trainer = _finished(new_trainer)
    new_evaluator("e1").score(CheckpointId(2, 1), 0.5)
    done = gc()
    assert done.attempt == trainer.attempt.number
    assert done.retired == ((CheckpointId(1, 1), UNHELD),)
    assert (done.swept, done.waiting, done.left) == ((), (), ())
    assert done.state_file
    assert gc.said == []
    assert read_line(store).checkpoints == ((2, 1), (3, 1))
    assert _named(store) == ("ckpt-3-1", "ckpt-2-1")
    assert [(e.checkpoint, e.outcome) for e in read_entries(store, VAL)] == [
        ((1, 1), EntryOutcome.SKIPPED),
        ((2, 1), EntryOutcome.SCORED),
    ]


def test_a_second_time_there_is_nothing_to_do(store, gc, new_trainer):
    _finished(new_trainer)
    gc()
    before = _snapshot(store)
    done = gc()
    assert (done.retired, done.swept, done.waiting, done.state_file) == ((), (), (), False)
    assert _snapshot(store) == before


def _messy(store, clock, new_trainer, new_evaluator):
    """A finished run with something of every kind to clean up."""
    first = new_trainer(policy=RetentionPolicy(max_to_keep=2, max_unevaluated=0))
    for step in range(1, 7):
        first.save(step)
    second = new_trainer(policy=RetentionPolicy(max_to_keep=2, max_unevaluated=0))
    second.save(7)
    for name in store.list("checkpoints/ckpt-7-2."):
        store.create(name.replace("7-2", "8-1"), store.get(name).data)  # by a stalled trainer
    store.create("checkpoints/ckpt-9-1.index", b"cut off")
    store.create("checkpoints/ckpt-9-2.index", b"cut off as well")
    store.create("checkpoints/ckpt-1-1.retire.json", b"{}")
    store.create("leases/ckpt-50-1/val.json", b"{}")
    store.create("pins/ckpt-51-1.json", b"{}")
    pin(store, CheckpointId(2, 1), reason="", by="ann")
    new_evaluator("e1").score(CheckpointId(3, 1), 0.5)
    lease = new_evaluator("e2").leases.acquire(CheckpointId(4, 1), "export")
    new_evaluator("dead").leases.acquire(CheckpointId(5, 1), "export")
    second.finish(7)
    return lease


def _renewing(clock, evaluator, lease):
    """Renews a lease whenever the cleaner sleeps."""
    held = [lease]
    sleep = clock.sleep

    def sleep_and_renew(seconds):
        sleep(seconds)
        held[0] = evaluator.leases.renew(held[0])

    clock.sleep = sleep_and_renew


def test_a_dry_run_writes_nothing_and_says_exactly_what_is_done_then(
    store, clock, gc, new_trainer, new_evaluator
):
    lease = _messy(store, clock, new_trainer, new_evaluator)
    before = _snapshot(store)
    _renewing(clock, new_evaluator("e2"), lease)
    writes = []
    watched = HookedStore(store, before=lambda operation, name: writes.append((operation, name)))
    foreseen = gc(on=watched, dry_run=True)
    assert {operation for operation, _ in writes} <= {"get", "list", "stat"}
    assert _snapshot(store).keys() == before.keys()
    assert gc() == foreseen
    assert [(str(c), reason.partition(":")[0]) for c, reason in foreseen.retired] == [
        ("1-1", "its retiring had begun"),
        ("5-1", UNHELD),
        ("8-1", "void"),
    ]
    assert [(what, str(c), lease) for what, c, lease in foreseen.swept] == [
        ("data", "9-1", ""),
        ("data", "9-2", ""),
        ("lease", "5-1", "leases/ckpt-5-1/export.json"),
        ("lease", "50-1", "leases/ckpt-50-1/val.json"),
        ("pin", "51-1", ""),
    ]
    assert foreseen.waiting == ((CheckpointId(4, 1), ("leases/ckpt-4-1/export.json",)),)
    assert foreseen.state_file


def test_nothing_is_left_over_afterwards(store, clock, gc, new_trainer, new_evaluator):
    lease = _messy(store, clock, new_trainer, new_evaluator)
    new_evaluator("e2").leases.release(lease)
    gc()
    line = read_line(store)
    assert line.checkpoints == ((2, 1), (3, 1), (6, 1), (7, 2))
    assert (line.void, line.retiring, line.uncommitted) == ((), frozenset(), frozenset())
    assert store.list("leases/") == []
    assert store.list("pins/") == ["pins/ckpt-2-1.json"]
    assert sorted(_named(store)) == ["ckpt-2-1", "ckpt-3-1", "ckpt-6-1", "ckpt-7-2"]


def test_it_waits_for_leases_of_dead_readers_once(store, clock, gc, new_trainer, new_evaluator):
    trainer = new_trainer()
    for step in (1, 2):
        new_evaluator("dead").leases.acquire(trainer.save(step), "export")
    trainer.save(3)
    trainer.finish(3)
    before = clock.now
    assert [c.step for c, _ in gc().retired] == [1, 2]
    assert clock.now - before == 60
    assert gc.said == ["waiting up to 60 s to see whether the leases are still in use"]
    assert store.list("leases/") == []


def test_a_dead_readers_lease_on_what_stays_is_swept(store, clock, gc, new_trainer, new_evaluator):
    trainer = new_trainer()
    first = trainer.save(1)
    new_evaluator("dead").leases.acquire(first, "export")
    trainer.finish(1)
    done = gc()
    assert done.swept == (("lease", first, "leases/ckpt-1-1/export.json"),)
    assert (done.waiting, store.list("leases/")) == ((), [])


def test_a_reader_that_shows_life_is_not_waited_for_any_longer(
    store, clock, gc, new_trainer, new_evaluator
):
    trainer = new_trainer()
    first = trainer.save(1)
    lease = new_evaluator("e1").leases.acquire(first, "export")
    trainer.save(2)
    trainer.finish(2)
    _renewing(clock, new_evaluator("e1"), lease)
    before = clock.now
    done = gc()
    assert clock.now - before == 5
    assert (done.retired, done.swept) == ((), ())
    assert done.waiting == ((first, ("leases/ckpt-1-1/export.json",)),)


def test_a_reader_that_lets_go_is_not_waited_for_any_longer(
    store, clock, gc, new_trainer, new_evaluator
):
    trainer = new_trainer()
    evaluator = new_evaluator("e1")
    lease = evaluator.leases.acquire(trainer.save(1), "export")
    trainer.save(2)
    trainer.finish(2)
    sleep, before = clock.sleep, clock.now

    def sleep_and_release(seconds):
        sleep(seconds)
        if clock.now - before == 10:
            evaluator.leases.release(lease)

    clock.sleep = sleep_and_release
    assert [c.step for c, _ in gc().retired] == [1]
    assert clock.now - before == 10


def test_a_killed_trainer_is_taken_for_gone_when_it_was_seen_silent(store, clock, gc, new_trainer):
    trainer = new_trainer()
    Heartbeat(store, TRAINER, attempt=1, surroundings=clock.surroundings).beat("training", 1)
    for step in (1, 2):
        trainer.save(step)
    store.create("checkpoints/ckpt-3-1.index", b"cut off")
    before = clock.now
    done = gc()
    assert clock.now - before == 60
    assert "attempt 1 of host:1 has not ended; waiting up to 60 s" in gc.said[0]
    assert [c.step for c, _ in done.retired] == [1]
    assert done.swept == ()
    assert store.list("checkpoints/ckpt-3-1.") != []
    assert re.search(r"of 3-1: attempt 1 has not ended", done.left[0])


def test_waiting_for_the_trainer_and_for_leases_is_one_wait(
    store, clock, gc, new_trainer, new_evaluator
):
    trainer = new_trainer()
    new_evaluator("dead").leases.acquire(trainer.save(1), "export")
    trainer.save(2)
    before = clock.now
    assert [c.step for c, _ in gc(lease_seconds=90).retired] == [1]
    assert clock.now - before == 90


def test_a_trainer_that_shows_life_is_named_and_nothing_is_done(store, clock, gc, new_trainer):
    trainer = new_trainer()
    heartbeat = Heartbeat(store, TRAINER, attempt=1, surroundings=clock.surroundings)
    for step in (1, 2):
        trainer.save(step)
    heartbeat.beat("training", 2)
    sleep = clock.sleep

    def sleep_and_beat(seconds):
        sleep(seconds)
        heartbeat.beat("training", 2)

    clock.sleep = sleep_and_beat
    for dry_run in (True, False):
        with pytest.raises(RunConflictError, match=r"trained by host:1 \(attempt 1\).*shows life"):
            gc(dry_run=dry_run)
    assert len(read_line(store).checkpoints) == 2


def test_a_trainer_that_ends_meanwhile_is_not_waited_for(store, clock, gc, new_trainer):
    trainer = new_trainer()
    for step in (1, 2):
        trainer.save(step)
    sleep = clock.sleep

    def sleep_and_finish(seconds):
        sleep(seconds)
        trainer.finish(2)

    clock.sleep = sleep_and_finish
    assert [c.step for c, _ in gc().retired] == [1]
    assert len(clock.slept) == 1


def test_an_attempt_that_begins_meanwhile_stops_it(store, clock, gc, new_trainer):
    trainer = new_trainer()
    for step in (1, 2):
        trainer.save(step)
    sleep = clock.sleep

    def sleep_and_claim(seconds):
        sleep(seconds)
        claim(store, clock)

    clock.sleep = sleep_and_claim
    with pytest.raises(RunConflictError, match=r"attempt 2 .* has just begun"):
        gc()
    assert read_line(store).retiring == frozenset()


def test_an_attempt_that_begins_just_before_the_intent_stops_it(store, clock, gc, new_trainer):
    _finished(new_trainer)

    def claim_then(operation, name):
        if operation == "create" and name.startswith("evaluations/"):
            claim(store, clock)

    with pytest.raises(AttemptSupersededError):
        gc(on=HookedStore(store, before=claim_then))
    assert read_line(store).retiring == frozenset()


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.PREEMPTED, None])
def test_for_an_attempt_without_a_checkpoint_nothing_is_done(
    store, clock, gc, new_trainer, outcome
):
    first = new_trainer(policy=RetentionPolicy(max_to_keep=9))
    for step in (1, 2, 3):
        first.save(step)
    second = new_trainer()
    if outcome:
        end_attempt(store, second.attempt, outcome=outcome, surroundings=clock.surroundings)
    before = _snapshot(store)
    done = gc()
    assert (done.attempt, done.retired, done.swept) == (2, (), ())
    assert "attempt 2" in done.left[0]
    assert "the checkpoints of attempt 1 are what a restart would begin from" in done.left[0]
    assert _snapshot(store) == before


def test_an_attempt_that_only_recorded_the_end_cleans_up_too(store, gc, new_trainer):
    first = new_trainer(policy=RetentionPolicy(max_to_keep=9))
    for step in (1, 2, 3):
        first.save(step)
    new_trainer().finish(3)
    assert [c.step for c, _ in gc().retired] == [1, 2]


def test_a_run_that_was_never_trained_has_nothing_to_clean_up(gc):
    done = gc()
    assert done.attempt is None
    assert "no trainer has begun here" in done.left[0]


def test_a_state_file_that_a_crash_left_old_is_brought_up_to_date(store, gc, new_trainer):
    trainer = new_trainer(policy=RetentionPolicy(max_to_keep=9))
    trainer.save(1)
    trainer.commit(2)
    assert _named(store) == ("ckpt-1-1",)
    assert gc(dry_run=True).state_file
    assert _named(store) == ("ckpt-1-1",)
    assert gc().state_file
    assert _named(store) == ("ckpt-2-1", "ckpt-1-1")
    assert not gc().state_file


def test_the_best_of_sets_that_an_old_attempt_did_not_record_stays(store, clock, gc, tmp_path):
    trainer = Trainer(store, clock, tmp_path / "scratch")
    trainer.attempt = trainer.attempt.model_copy(update={"eval_sets": ()})
    name = "attempts/0001.json"
    store.delete(name, generation=store.stat(name).generation)
    store.create(name, encode(trainer.attempt))
    for step in (1, 2, 3):
        trainer.save(step)
    Evaluator(store, clock, "e1").score(CheckpointId(1, 1), 0.5)
    trainer.finish(3)
    assert [c.step for c, _ in gc().retired] == [2]
    assert [e.checkpoint.step for e in read_entries(store, VAL)] == [1, 2]


@BUT_GCS
def test_two_at_once_do_what_one_does(new_store, clock, tmp_path):
    for number in itertools.count(1):
        store = new_store(f"run-{number}")
        trainer = Trainer(store, clock, tmp_path / "scratch")
        for step in (1, 2, 3):
            trainer.save(step)
        trainer.finish(3)
        count, others = itertools.count(1), []

        def other(operation, name, *, store=store, number=number, count=count, others=others):
            if next(count) == number:
                others.append(collect(store, surroundings=clock.surroundings))

        done = collect(HookedStore(store, before=other), surroundings=clock.surroundings)
        if not others:
            break
        assert {r.checkpoint.step for r in (*done.retired, *others[0].retired)} == {1, 2}
        line = read_line(store)
        assert (line.checkpoints, line.retiring) == (((3, 1),), frozenset())
        assert store.list("checkpoints/ckpt-1-1") + store.list("checkpoints/ckpt-2-1") == []
        assert _named(store) == ("ckpt-3-1",)
    assert number > 40


@BUT_GCS
def test_beside_a_trainer_that_wakes_up_it_takes_nothing_that_counts(new_store, clock, tmp_path):
    for number in itertools.count(1):
        store = new_store(f"run-{number}")
        trainer = Trainer(store, clock, tmp_path / "scratch")
        evaluator = Evaluator(store, clock, "e1")
        for step in (1, 2, 3):
            trainer.save(step)
        evaluator.score(CheckpointId(2, 1), 0.5)
        count, woke = itertools.count(1), []

        def wake(operation, name, *, number=number, count=count, woke=woke, trainer=trainer):
            if next(count) == number:
                trainer.save(4)
                trainer.retire()
                woke.append(True)

        collect(HookedStore(store, before=wake), surroundings=clock.surroundings)
        if not woke:
            break
        trainer.finish(4)
        collect(store, surroundings=clock.surroundings)
        line = read_line(store)
        assert (line.checkpoints, line.retiring, line.uncommitted) == (
            ((2, 1), (4, 1)),
            frozenset(),
            frozenset(),
        )
        assert sorted(_named(store)) == ["ckpt-2-1", "ckpt-4-1"]
    assert number > 30
