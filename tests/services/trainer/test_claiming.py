import pytest

from services.trainer.claiming import lost_steps
from tandem.checkpoints.heartbeats import TRAINER, Heartbeat, read_heartbeat
from tandem.checkpoints.names import CheckpointId
from tests.checkpoints.actors import FakeClock, claim
from tests.checkpoints.memory_store import MemoryStore


@pytest.mark.parametrize(
    ("beaten_by", "step", "resumed", "lost"),
    [
        (1, 150, CheckpointId(100, 1), 50),
        (1, 30, None, 30),
        (1, 100, CheckpointId(100, 1), 0),
        (1, None, None, 0),  # it never took a step
        (1, 90, CheckpointId(100, 1), 0),  # the last beat was not written
        (7, 150, CheckpointId(100, 1), 0),  # of another attempt: counted when that one ended
    ],
)
def test_lost_are_the_steps_after_the_checkpoint_that_the_heartbeat_tells_of(
    beaten_by, step, resumed, lost
):
    store, clock = MemoryStore(), FakeClock()
    before = claim(store, clock)
    Heartbeat(store, TRAINER, attempt=beaten_by, surroundings=clock.surroundings).beat("x", step)
    assert lost_steps(before, resumed, beat=read_heartbeat(store, TRAINER)) == lost


def test_nobody_knows_of_steps_that_an_attempt_without_a_beat_lost():
    store, clock = MemoryStore(), FakeClock()
    assert lost_steps(claim(store, clock), None, beat=None) == 0


def test_an_attempt_keeps_what_was_lost_before_it():
    store, clock = MemoryStore(), FakeClock()
    asked = []

    def lost(before, resumed_from):
        asked.append((before.number, resumed_from))
        return 7

    assert claim(store, clock, lost_steps=lost).lost_steps == 0
    assert claim(store, clock, lost_steps=lost).lost_steps == 7
    assert asked == [(1, None)]
