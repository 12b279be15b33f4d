import dataclasses
import itertools
import random

import pytest

from tandem.checkpoints.retrying import Backoff, retried
from tandem.errors import StoreError, StoreUnavailableError

BACKOFF = Backoff(initial_seconds=1, factor=3, max_seconds=10, deadline_seconds=40)


def _with_random(clock, numbers):
    return dataclasses.replace(clock.surroundings, random=iter(numbers).__next__)


class _Flaky:
    def __init__(self, num_failures, error=StoreUnavailableError):
        self.left = num_failures
        self.error = error

    def __call__(self):
        if self.left:
            self.left -= 1
            raise self.error("no answer")
        return "answer"


def test_pauses_grow_up_to_their_bound_and_end_at_the_deadline(clock):
    pauses = []
    for pause in BACKOFF.pauses(clock.surroundings):
        pauses.append(pause)
        clock.sleep(pause)
    # 1 + 3 + 9 + 10 + 10 = 33; another 10 would end after 40.
    assert pauses == [1, 3, 9, 10, 10]


def test_time_spent_in_the_tries_counts_towards_the_deadline(clock):
    pauses = BACKOFF.pauses(clock.surroundings)
    clock.now += 39.5
    assert list(itertools.islice(pauses, 1)) == []


def test_each_pause_is_a_random_part_of_its_bound(clock):
    pauses = BACKOFF.pauses(_with_random(clock, [0.25, 0.5, 0.0, 0.75]))
    assert list(itertools.islice(pauses, 4)) == [0.75, 1.5, 9, 2.5]


def test_no_pause_is_zero_so_that_nobody_asks_without_end(clock):
    draw = random.Random(0).random
    surroundings = dataclasses.replace(clock.surroundings, random=draw)
    assert all(pause > 0 for pause in itertools.islice(BACKOFF.pauses(surroundings), 1000))


def test_a_call_is_repeated_until_the_store_answers(clock):
    assert retried(_Flaky(3), backoff=BACKOFF, surroundings=clock.surroundings) == "answer"
    assert clock.slept == [1, 3, 9]


def test_a_call_is_given_up_at_the_deadline(clock):
    with pytest.raises(StoreUnavailableError, match="no answer"):
        retried(_Flaky(1000), backoff=BACKOFF, surroundings=clock.surroundings)
    assert clock.slept == [1, 3, 9, 10, 10]


def test_other_errors_are_not_worth_a_repetition(clock):
    with pytest.raises(StoreError):
        retried(_Flaky(1, StoreError), backoff=BACKOFF, surroundings=clock.surroundings)
    assert clock.slept == []
