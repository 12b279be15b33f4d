"""The step loop with a step that only counts."""

import itertools

import pytest
import tensorflow as tf

from services.trainer.actions import EveryNSteps, EverySeconds, EveryStep
from services.trainer.loop import (
    BETWEEN_STEPS,
    TAKING_A_STEP,
    TAKING_FIRST_STEP,
    WAITING_FOR_DATA,
    run_steps,
)
from services.watchdog import Where
from tandem import fields
from tandem.errors import DataEndedError, NonFiniteLossError
from tandem.training.steps import StepResult

BATCH = {
    fields.IMAGE: tf.zeros([2, 4, 4, 3]),
    fields.RECORD: tf.constant(["train.record:3", "train.record:7"]),
    fields.SOURCE_ID: tf.constant(["a.jpg", ""]),
}


class Clock:
    """Each look is a second later."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        self.now += 1.0
        return self.now


class CountingStep:
    def __init__(self, bad_call=None):
        self.rates = []
        self.bad_call = bad_call

    def __call__(self, batch, learning_rate):
        self.rates.append(learning_rate)
        finite = len(self.rates) != self.bad_call
        total = 3.0 if finite else float("nan")
        return StepResult(1.0, 1.5, 0.5, total, 2.0, finite)


def run(
    step=0,
    *,
    last_step,
    take_step=None,
    actions=(),
    should_stop=lambda: False,
    where=None,
    batches=None,
):
    take_step = take_step or CountingStep()
    reached = run_steps(
        step,
        last_step=last_step,
        take_step=take_step,
        batches=batches or itertools.repeat(BATCH),
        schedule=lambda finished: 0.1 * finished,
        actions=list(actions),
        should_stop=should_stop,
        where=where or Where(BETWEEN_STEPS),
        monotonic=Clock(),
    )
    return reached, take_step


@pytest.mark.parametrize(("start", "last", "taken"), [(0, 20, 20), (15, 20, 5), (20, 20, 0)])
def test_exactly_the_steps_up_to_the_last_are_taken(start, last, taken):
    reached, step = run(start, last_step=last)
    assert reached == last
    assert len(step.rates) == taken


def test_the_rate_of_a_step_is_that_of_the_steps_finished_before_it():
    _, step = run(5, last_step=8)
    assert step.rates == pytest.approx([0.5, 0.6, 0.7])


def test_the_loop_stops_before_the_next_step_when_asked():
    asked = iter([False, False, True])
    reached, step = run(last_step=None, should_stop=lambda: next(asked))
    assert (reached, len(step.rates)) == (2, 2)


def test_actions_see_the_step_that_was_just_finished():
    seen = []
    run(last_step=3, actions=[EveryStep(seen.append)])
    assert [facts.step for facts in seen] == [1, 2, 3]
    assert seen[0].losses["Loss/total_loss"] == 3.0
    assert seen[0].losses_by_part["total"] == 3.0
    assert (seen[0].num_images, seen[0].seconds, seen[0].data_seconds) == (2, 2.0, 1.0)


def test_every_n_steps_is_due_at_multiples():
    seen = []
    run(3, last_step=12, actions=[EveryNSteps(lambda f: seen.append(f.step), n=5)])
    assert seen == [5, 10]


def test_every_seconds_is_due_at_the_first_step_and_then_by_the_clock():
    now, seen = [0.0], []
    action = EverySeconds(lambda f: seen.append(f.step), seconds=10.0, monotonic=lambda: now[0])

    def advance(facts):
        now[0] += 4.0

    run(last_step=7, actions=[EveryStep(advance), action])
    assert seen == [1, 4, 7]


def test_data_that_end_before_the_last_step_are_an_error_that_says_what_to_do():
    with pytest.raises(DataEndedError, match="ended after step 2, before the last one"):
        run(last_step=5, batches=iter([BATCH, BATCH]))


def test_the_loop_says_where_it_is_before_it_goes_there():
    where, seen = Where(BETWEEN_STEPS), []

    class Step(CountingStep):
        def __call__(self, batch, learning_rate):
            seen.append(where.at)
            return super().__call__(batch, learning_rate)

    def batches():
        while True:
            seen.append(where.at)
            yield BATCH

    run(
        last_step=2,
        take_step=Step(),
        batches=batches(),
        actions=[EveryStep(lambda facts: seen.append(where.at))],
        where=where,
    )
    assert seen == [
        *(WAITING_FOR_DATA, TAKING_FIRST_STEP, BETWEEN_STEPS),
        *(WAITING_FOR_DATA, TAKING_A_STEP, BETWEEN_STEPS),
    ]


def test_a_loss_that_is_not_finite_ends_the_run_naming_the_records():
    # Case C21: step 3 of a run that saves at each step.
    saved = []
    with pytest.raises(NonFiniteLossError) as caught:
        run(
            last_step=10,
            take_step=CountingStep(bad_call=3),
            actions=[EveryNSteps(lambda f: saved.append(f.step), n=1)],
        )
    message = str(caught.value)
    assert "step 3 is not finite" in message
    assert "train.record:3 (source_id 'a.jpg')" in message
    assert "train.record:7 (source_id 'none')" in message
    assert saved == [1, 2]
