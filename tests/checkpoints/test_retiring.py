import itertools

import pytest

from tandem.checkpoints.ledger import EntryOutcome, read_entries
from tandem.checkpoints.lines import read_line
from tandem.checkpoints.names import CheckpointId
from tandem.checkpoints.policies import RetentionPolicy
from tandem.errors import AttemptSupersededError
from tests.checkpoints.actors import VAL, Evaluator, Trainer, claim
from tests.checkpoints.hooked_store import HookedStore, once


def _objects_of(store, *steps):
    return [n for n in store.list("checkpoints/") if any(f"ckpt-{s}-" in n for s in steps)]


def test_what_the_policy_does_not_keep_goes_with_all_its_objects(store, new_trainer, new_evaluator):
    trainer = new_trainer(policy=RetentionPolicy(max_to_keep=2, max_unevaluated=0))
    evaluator = new_evaluator("e1")
    for step, metric in [(1, 0.1), (2, 0.9), (3, 0.2), (4, 0.3)]:
        evaluator.score(trainer.save(step), metric)
    done = trainer.retire()
    assert done.retired == ((1, 1),)
    assert read_line(store).checkpoints == ((2, 1), (3, 1), (4, 1))
    assert _objects_of(store, 1) == []
    assert "ckpt-1-1" not in store.get("checkpoints/checkpoint").data.decode()
    assert trainer.retire().retired == ()


def test_it_goes_in_the_order_that_a_crash_or_a_reader_can_stand(store, new_trainer):
    trainer = new_trainer()
    for step in (1, 2):
        trainer.save(step)
    done = []
    hooked = HookedStore(store, after=lambda operation, name: done.append((operation, name)))
    trainer.retirer_on(hooked).run_pass()
    assert [step for step in done if step[0] not in ("get", "generation", "list", "stat")] == [
        ("create", "evaluations/val/1-1-d1.json"),
        ("create", "checkpoints/ckpt-1-1.retire.json"),
        ("replace", "checkpoints/checkpoint"),
        ("delete", "checkpoints/ckpt-1-1.commit.json"),
        ("delete", "checkpoints/ckpt-1-1.data-00000-of-00001"),
        ("delete", "checkpoints/ckpt-1-1.index"),
        ("delete", "checkpoints/ckpt-1-1.retire.json"),
    ]
    looks = [step for step in done if step == ("list", "leases/ckpt-1-1/")]
    assert done.index(("create", "checkpoints/ckpt-1-1.retire.json")) < done.index(looks[0])


def test_one_that_was_not_evaluated_gets_its_entry_first(store, new_trainer):
    trainer = new_trainer()
    for step in (1, 2):
        trainer.save(step)
    trainer.retire()
    entries = read_entries(store, VAL)
    assert [(e.checkpoint, e.outcome) for e in entries] == [((1, 1), EntryOutcome.SKIPPED)]
    assert entries[0].reasons == ("retired before it was evaluated",)


def test_those_that_wait_for_the_evaluator_are_held(store, new_trainer, new_evaluator):
    trainer = new_trainer(policy=RetentionPolicy(max_to_keep=1, max_unevaluated=20))
    saved = [trainer.save(step) for step in range(1, 6)]
    assert trainer.retire().retired == ()
    new_evaluator("e1").score(saved[1], 0.5)
    assert trainer.retire().retired == ()  # it is the best now
    new_evaluator("e1").score(saved[2], 0.6)
    assert trainer.retire().retired == (saved[1],)


def test_one_that_is_being_read_stays_until_the_lease_is_released(
    store, new_trainer, new_evaluator
):
    trainer = new_trainer()
    evaluator = new_evaluator("e1")
    lease = evaluator.leases.acquire(trainer.save(1), "export")
    trainer.save(2)
    assert trainer.retire() == ((), (), ())
    evaluator.leases.release(lease)
    assert trainer.retire().retired == ((1, 1),)


def test_one_whose_reader_died_goes_when_the_lease_was_seen_stale(
    store, clock, new_trainer, new_evaluator
):
    trainer = new_trainer()
    new_evaluator("dead").acquire(trainer.save(1))
    trainer.save(2)
    assert trainer.retire().retired == ()
    clock.now += 60
    assert trainer.retire().retired == ((1, 1),)
    assert store.list("leases/") == []


def test_a_newer_attempt_stops_it(store, clock, new_trainer):
    trainer = new_trainer()
    for step in (1, 2):
        trainer.save(step)
    claim(store, clock)
    with pytest.raises(AttemptSupersededError):
        trainer.retire()
    assert len(read_line(store).checkpoints) == 2


def test_a_newer_attempt_stops_it_also_just_before_the_intent(store, clock, new_trainer):
    trainer = new_trainer()
    for step in (1, 2):
        trainer.save(step)

    def claim_before_the_second_look(operation, name):
        if operation == "create" and name.startswith("evaluations/"):
            claim(store, clock)

    hooked = HookedStore(store, before=claim_before_the_second_look)
    with pytest.raises(AttemptSupersededError):
        trainer.retirer_on(hooked).run_pass()
    assert read_line(store).retiring == frozenset()
    assert len(read_line(store).checkpoints) == 2


WHOLE = {"index", "data-00000-of-00001", "commit.json"}


class StopError(Exception):
    pass


def _stopping_at(number, moment, store):
    count = itertools.count(1)

    def hook(operation, name):
        if next(count) == number:
            raise StopError

    return HookedStore(store, **{moment: hook})


def _crash_and_recover(store, clock, folder, *, number, moment):
    """Retires with a crash at the numbered operation, then lets a second attempt finish the job."""
    first = Trainer(store, clock, folder)
    for step in (1, 2, 3):
        first.save(step)
    evaluator = Evaluator(store, clock, "e1")
    evaluator.score(CheckpointId(2, 1), 0.5)
    crashed = False
    try:
        first.retirer_on(_stopping_at(number, moment, store)).run_pass()
    except StopError:
        crashed = True
    # Plain TensorFlow sees whole checkpoints only, also in between.
    for name in store.get("checkpoints/checkpoint").data.decode().split('"')[1::2]:
        assert {n.partition(".")[2] for n in store.list(f"checkpoints/{name}.")} >= WHOLE
    second = Trainer(store, clock, folder)
    assert second.attempt.resumed_from == (3, 1)
    second.save(4)
    second.retire()
    return crashed


@pytest.mark.parametrize(
    "backend", ["memory", "local", pytest.param("gcs", marks=pytest.mark.slow)], indirect=True
)
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_crash_at_any_operation_is_made_good_by_the_next_attempt(
    new_store, clock, tmp_path, moment
):
    for number in itertools.count(1):
        store = new_store(f"run-{number}")
        crashed = _crash_and_recover(
            store, clock, tmp_path / "scratch", number=number, moment=moment
        )
        line = read_line(store)
        assert line.checkpoints == ((2, 1), (4, 2))
        assert (line.void, line.retiring, line.uncommitted) == ((), frozenset(), frozenset())
        left = {name.split(".")[0] for name in store.list("checkpoints/")}
        assert left == {f"checkpoints/{n}" for n in ("checkpoint", "ckpt-2-1", "ckpt-4-2")}
        assert [e.checkpoint.step for e in read_entries(store, VAL)] == [1, 2, 3]
        if not crashed:
            break
    assert number > 25


def test_what_a_killed_upload_left_is_swept_by_the_next_attempt(store, new_trainer):
    first = new_trainer()
    first.save(1)
    store.create("checkpoints/ckpt-2-1.index", b"")
    first.retire()
    assert _objects_of(store, 2) != []  # the current attempt may be writing it right now
    second = new_trainer()
    second.retire()
    assert _objects_of(store, 2) != []  # not before a commit of its own
    second.save(3)
    second.retire()
    assert _objects_of(store, 2) == []


def test_a_quarantine_without_a_checkpoint_is_swept(store, new_trainer):
    first = new_trainer()
    first.save(1)
    store.create("checkpoints/ckpt-9-1.damaged.json", b"{}")
    second = new_trainer()
    second.save(2)
    second.retire()
    assert _objects_of(store, 9) == []


def test_leases_on_checkpoints_that_are_gone_are_swept_once_stale(store, clock, new_trainer):
    trainer = new_trainer()
    trainer.save(1)
    store.create("leases/ckpt-9-1/val.json", b"{}")
    trainer.retire()
    assert store.list("leases/") != []
    clock.now += 60
    trainer.retire()
    assert store.list("leases/") == []


def test_a_damaged_checkpoint_is_retired_like_any_other(store, new_trainer):
    trainer = new_trainer(policy=RetentionPolicy(max_to_keep=3, max_unevaluated=20))
    for step in (1, 2):
        trainer.save(step)
    store.create("checkpoints/ckpt-1-1.damaged.json", b"{}")
    assert trainer.retire().retired == ((1, 1),)
    assert _objects_of(store, 1) == []


def test_a_bit_that_flips_just_before_its_object_goes_does_not_keep_it(store, damage, new_trainer):
    trainer = new_trainer()
    for step in (1, 2):
        trainer.save(step)
    name = "checkpoints/ckpt-1-1.commit.json"
    meanwhile = once("delete", name, lambda: damage(name, b"flipped"))
    done = trainer.retirer_on(HookedStore(store, before=meanwhile)).run_pass()
    assert meanwhile.state["done"]
    assert done.retired == ((1, 1),)
    assert _objects_of(store, 1) == []
