import pytest

from tandem.checkpoints.attempts import Outcome, attempt_is_current, end_attempt
from tandem.checkpoints.heartbeats import TRAINER, Heartbeat
from tandem.checkpoints.lines import read_line
from tandem.checkpoints.names import CheckpointId
from tandem.errors import AttemptSupersededError, RunConflictError
from tests.checkpoints.actors import claim
from tests.checkpoints.hooked_store import HookedStore, once


def _heartbeat(store, clock, attempt):
    return Heartbeat(store, TRAINER, attempt=attempt.number, surroundings=clock.surroundings)


def test_the_first_attempt_resumes_from_nothing(store, clock):
    attempt = claim(store, clock)
    assert (attempt.number, attempt.resumed_from, attempt.config_diff) == (1, None, ())
    assert attempt_is_current(store, attempt)


def test_the_same_owner_starts_again_at_once_from_the_newest_checkpoint(store, clock, new_trainer):
    trainer = new_trainer(holder="pod-a")
    _heartbeat(store, clock, trainer.attempt).beat("training", 5)
    trainer.save(5)
    attempt = claim(store, clock, holder="pod-b")
    assert (attempt.number, attempt.resumed_from) == (2, CheckpointId(5, 1))
    assert attempt.config_diff == ("was num_steps: 5",)
    assert clock.slept == []
    assert not attempt_is_current(store, trainer.attempt)


def test_another_owner_starts_at_once_when_the_attempt_has_ended(store, clock):
    first = claim(store, clock)
    end_attempt(store, first, outcome=Outcome.PREEMPTED, surroundings=clock.surroundings)
    assert claim(store, clock, owner="job-2").number == 2
    assert clock.slept == []


@pytest.mark.parametrize("has_beaten", [True, False])
def test_another_owner_starts_after_a_minute_of_silence(store, clock, has_beaten):
    first = claim(store, clock)
    if has_beaten:
        _heartbeat(store, clock, first).beat("training")
    told = []
    attempt = claim(store, clock, owner="job-2", on_wait=told.append)
    assert attempt.number == 2
    assert sum(clock.slept) == 60
    assert len(told) == 1
    assert "host:1" in told[0]


def test_another_owner_gives_up_as_soon_as_the_trainer_shows_life(store, clock):
    first = claim(store, clock, holder="node-7:4711")
    heartbeat = _heartbeat(store, clock, first)
    heartbeat.beat("training", 10)
    clock_of_second = type(clock)()
    clock_of_second.sleep = lambda seconds: heartbeat.beat("training", 11)
    with pytest.raises(RunConflictError, match=r"node-7:4711.*--takeover"):
        claim(store, clock_of_second, owner="job-2", on_wait=lambda message: None)
    assert read_line(store).newest_attempt == first


def test_another_owner_gives_up_when_a_third_claims_meanwhile(store, clock):
    claim(store, clock, owner="job-1")
    clock_of_second = type(clock)()
    clock_of_second.sleep = lambda seconds: claim(store, clock, owner="job-1", holder="third")
    with pytest.raises(RunConflictError, match="third"):
        claim(store, clock_of_second, owner="job-2", on_wait=lambda message: None)


def test_takeover_insists(store, clock):
    first = claim(store, clock)
    _heartbeat(store, clock, first).beat("training")
    assert claim(store, clock, owner="job-2", takeover=True).number == 2
    assert clock.slept == []
    assert not attempt_is_current(store, first)


@pytest.mark.parametrize(
    ("owner_of_winner", "error"),
    [("job-1", AttemptSupersededError), ("job-2", RunConflictError)],
)
def test_of_two_that_claim_at_once_one_stops(store, clock, owner_of_winner, error):
    def win():
        claim(store, clock, owner=owner_of_winner, holder="winner:1")

    late = HookedStore(store, before=once("create", "attempts/0001", win))
    with pytest.raises(error, match="winner:1"):
        claim(late, clock, owner="job-1")
    assert [attempt.holder for attempt in read_line(store).attempts] == ["winner:1"]


def test_a_claim_that_a_newer_one_overtakes_stops(store, clock):
    late = HookedStore(
        store, after=once("create", "attempts/0001", lambda: claim(store, clock, holder="newer"))
    )
    with pytest.raises(AttemptSupersededError, match="newer"):
        claim(late, clock)


def test_a_damaged_newest_checkpoint_is_not_resumed_from(store, clock, new_trainer):
    trainer = new_trainer()
    trainer.commit(1)
    trainer.commit(2)
    store.create("checkpoints/ckpt-2-1.damaged.json", b"{}")
    assert claim(store, clock).resumed_from == CheckpointId(1, 1)


def test_checkpoints_of_a_line_that_was_given_up_stay_void(store, new_trainer):
    first = new_trainer()
    first.commit(1)
    first.commit(2)
    store.create("checkpoints/ckpt-2-1.damaged.json", b"{}")
    second = new_trainer()
    assert read_line(store).checkpoints == ((1, 1), (2, 1))
    second.commit(2)
    line = read_line(store)
    assert (line.checkpoints, line.void) == (((1, 1), (2, 2)), ((2, 1),))
