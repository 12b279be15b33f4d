"""Which checkpoint next, and when the watch is over."""

import pytest

from services.evaluator.watch import Ending, Situation, ending, in_order
from tandem.checkpoints.attempts import Outcome
from tandem.checkpoints.names import CheckpointId
from tandem.kube.jobs import JobPhase

FIRST, SECOND, THIRD = CheckpointId(9, 1), CheckpointId(10, 1), CheckpointId(100, 2)


@pytest.mark.parametrize(
    ("outcome", "pending", "quiet_seconds", "expected"),
    [
        (None, [], 0.0, None),
        (None, [], 179.9, None),
        (None, [], 180.0, Ending.TIMED_OUT),
        (None, [FIRST], 1000.0, None),
        (Outcome.PREEMPTED, [], 179.9, None),
        (Outcome.PREEMPTED, [], 180.0, Ending.TIMED_OUT),
        (Outcome.FINISHED, [FIRST], 1000.0, None),
        (Outcome.FINISHED, [], 0.0, Ending.COMPLETED),
        (Outcome.FINISHED, [], 1000.0, Ending.COMPLETED),
        (Outcome.FAILED, [FIRST], 0.0, None),
        (Outcome.FAILED, [], 0.0, Ending.TRAINER_FAILED),
    ],
)
def test_the_watch_ends_only_when_nothing_is_left_to_score(
    outcome, pending, quiet_seconds, expected
):
    situation = Situation(outcome, pending, quiet_seconds)
    assert ending(situation, wait_interval=180.0) is expected


@pytest.mark.parametrize(
    ("outcome", "job", "expected"),
    [
        (None, JobPhase.WAITING, None),
        (None, JobPhase.RUNNING, None),
        (Outcome.PREEMPTED, JobPhase.WAITING, None),
        (None, JobPhase.FAILED, Ending.TRAINER_FAILED),
        (None, JobPhase.COMPLETE, Ending.TIMED_OUT),
        (Outcome.FINISHED, JobPhase.FAILED, Ending.COMPLETED),
        (Outcome.FINISHED, JobPhase.COMPLETE, Ending.COMPLETED),
        (Outcome.FAILED, JobPhase.FAILED, Ending.TRAINER_FAILED),
        # of an attempt before: a new Job goes on with the run
        (Outcome.FINISHED, JobPhase.WAITING, None),
        (Outcome.FAILED, JobPhase.WAITING, None),
        (Outcome.FAILED, JobPhase.RUNNING, None),
    ],
)
def test_a_job_that_may_start_a_trainer_is_waited_for_and_a_failed_one_is_not(
    outcome, job, expected
):
    assert ending(Situation(outcome, [], 1000.0, job), wait_interval=180.0) is expected
    assert ending(Situation(outcome, [FIRST], 1000.0, job), wait_interval=180.0) is None


def test_every_goes_by_step_and_not_by_spelling():
    assert in_order([THIRD, FIRST, SECOND], "every") == [FIRST, SECOND, THIRD]


def test_newest_first_fills_in_the_older_ones_afterwards():
    assert in_order([SECOND, THIRD, FIRST], "newest-first") == [THIRD, SECOND, FIRST]
