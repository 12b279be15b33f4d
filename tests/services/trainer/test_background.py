"""The background thread, its one waiting place, and what becomes of failures."""

import threading

import pytest

from services.trainer.background import Background, Job

PATIENCE = 30.0  # of waits that end by an event; only a broken test waits so long


class Held:
    """A job that says when it began, and ends when it is told to."""

    def __init__(self, done, name, error=None):
        self.began, self.may_end = threading.Event(), threading.Event()
        self._done, self._name, self._error = done, name, error

    def act(self):
        self.began.set()
        assert self.may_end.wait(PATIENCE)
        if self._error is not None:
            raise self._error
        self._done.append(self._name)

    def let_go(self):
        self._done.append(f"{self._name} let go")


@pytest.fixture
def background():
    made = Background()
    yield made
    made.close(PATIENCE)


@pytest.fixture
def done():
    return []


def test_one_job_is_done_while_one_waits_and_a_third_has_no_place(background, done):
    first, second = Held(done, "first"), Held(done, "second")
    background.put(Job(first.act, first.let_go))
    assert first.began.wait(PATIENCE)
    assert background.wait_for_place(0)
    assert background.num_pending == 1
    background.put(Job(second.act, second.let_go))
    assert not background.wait_for_place(0)
    assert background.num_pending == 2
    first.may_end.set()
    assert background.wait_for_place(PATIENCE)
    assert not background.wait_until_idle(0)
    second.may_end.set()
    assert background.wait_until_idle(PATIENCE)
    assert done == ["first", "first let go", "second", "second let go"]


def test_a_job_that_waits_can_be_taken_back_and_is_let_go(background, done):
    first, second = Held(done, "first"), Held(done, "second")
    background.put(Job(first.act, first.let_go))
    assert first.began.wait(PATIENCE)
    background.put(Job(second.act, second.let_go))
    assert background.drop_waiting()
    assert not background.drop_waiting()
    first.may_end.set()
    assert background.wait_until_idle(PATIENCE)
    assert done == ["second let go", "first", "first let go"]


@pytest.mark.parametrize("error", [ValueError("broken"), SystemExit(3), MemoryError()])
def test_what_a_job_raises_is_raised_in_every_later_call_and_no_further_job_is_done(done, error):
    background = Background()
    first, second = Held(done, "first", error), Held(done, "second")
    background.put(Job(first.act, first.let_go))
    assert first.began.wait(PATIENCE)
    background.put(Job(second.act, second.let_go))
    first.may_end.set()
    for call in (
        lambda: background.wait_until_idle(PATIENCE),
        lambda: background.wait_for_place(PATIENCE),
        background.raise_failure,
        lambda: background.put(Job(second.act, second.let_go)),
    ):
        with pytest.raises(type(error)):
            call()
    assert background.close(PATIENCE)
    assert done == ["first let go", "second let go"]


def test_closing_does_not_wait_for_a_job_that_hangs(done):
    background = Background()
    first = Held(done, "first")
    background.put(Job(first.act, first.let_go))
    assert first.began.wait(PATIENCE)
    assert not background.close(0)
    first.may_end.set()
    assert background.close(PATIENCE)


def test_nobody_waits_for_a_thread_that_has_ended():
    background = Background()
    background.close(PATIENCE)
    with pytest.raises(RuntimeError, match="has ended"):
        background.wait_until_idle(PATIENCE)
