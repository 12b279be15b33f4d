"""The wish to stop, and since when it is there."""

import itertools
import os
import signal

import pytest

from services.signals import STOP_SIGNALS, StopRequest, StopRequestedError


@pytest.fixture
def handlers():
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("handlers")
def test_a_second_sigterm_does_not_move_the_moment_that_a_deadline_counts_from():
    stop = StopRequest(monotonic=itertools.count(5.0).__next__)
    stop.install()
    assert stop.asked_at is None
    assert not stop()
    os.kill(os.getpid(), signal.SIGTERM)
    os.kill(os.getpid(), signal.SIGTERM)
    assert stop()
    assert stop.asked_at == 5.0


@pytest.mark.usefixtures("handlers")
def test_a_second_ctrl_c_interrupts():
    stop = StopRequest()
    stop.install()
    os.kill(os.getpid(), signal.SIGINT)
    assert stop()
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)


def test_a_sleep_ends_by_an_error_when_asked_to_stop():
    stop = StopRequest()
    stop.set()
    with pytest.raises(StopRequestedError):
        stop.sleep(3600)
