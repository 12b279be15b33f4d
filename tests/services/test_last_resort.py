"""Processes that hang in native code, where Python's handlers of signals never run."""

import signal
import subprocess
import sys
import time

import pytest

from services.exits import Exit
from tests.deploy.rendering import CHECKOUT

# A mutex that is taken twice is waited for until the end of days, whatever signals come.
_HANGS = """
import ctypes
from services.last_resort import end_if_hanging
from services.signals import StopRequest

def waits_for_a_mutex():
    mutex = ctypes.create_string_buffer(64)
    lock = ctypes.CDLL(None).pthread_mutex_lock
    lock(mutex)
    print("hangs", flush=True)
    lock(mutex)

stop = StopRequest()
stop.install()
end_if_hanging(stop, seconds={seconds}, seconds_after_ctrl_c=0.2)
waits_for_a_mutex()
"""


_HANGS_IN_ITS_LOG = """
import logging, sys, threading
from services.last_resort import end_if_hanging
from services.signals import StopRequest

logging.basicConfig()
stop = StopRequest()
stop.install()
end_if_hanging(stop, seconds={seconds})
logging.getLogger().handlers[0].acquire()
print("hangs", flush=True)
threading.Event().wait()
"""


@pytest.fixture
def hanging():
    started = []

    def start(*, seconds, program=_HANGS):
        process = subprocess.Popen(
            [sys.executable, "-c", program.format(seconds=seconds)],
            cwd=CHECKOUT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout.readline() == "hangs\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_a_process_that_hangs_ends_after_its_time_and_says_where(hanging):
    process = hanging(seconds=0.5)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == Exit.UNEXPECTED
    assert "waits_for_a_mutex" in errors


def test_a_process_that_holds_the_lock_of_its_log_ends_without_a_word(hanging):
    process = hanging(seconds=0.2, program=_HANGS_IN_ITS_LOG)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == Exit.UNEXPECTED


def test_a_second_ctrl_c_ends_a_process_that_hangs(hanging):
    process = hanging(seconds=3600)
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == Exit.INTERRUPTED


def test_a_signal_that_asks_for_nothing_ends_nothing(hanging):
    process = hanging(seconds=0.2)
    process.send_signal(signal.SIGWINCH)
    time.sleep(1)
    assert process.poll() is None
