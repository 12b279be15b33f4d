"""Who may go on with a run where nobody says so."""

import os
import subprocess
import sys

import pytest

from services.trainer.ownership import owner_of, process_is_alive

ALIVE, DEAD = {7, 9}, 8


@pytest.mark.parametrize(
    ("stated", "previous", "expected"),
    [
        (None, None, "process 7 on here"),
        ("job-1", "process 8 on here", "job-1"),
        (None, "process 8 on here", "process 8 on here"),
        (None, "process 9 on here", "process 7 on here"),
        (None, "process 7 on here", "process 7 on here"),
        (None, "process 8 on there", "process 7 on here"),
        (None, "job-1", "process 7 on here"),
    ],
    ids=[
        "the first attempt is our own",
        "a stated owner wins",
        "a dead forerunner on this machine is succeeded",
        "a living one is not",
        "our own number is a container that was started again",
        "another machine's processes can't be looked at",
        "another kind of owner is not succeeded",
    ],
)
def test_ownership_passes_on_only_from_a_process_that_is_seen_to_be_gone(
    stated, previous, expected
):
    owner = owner_of(
        stated=stated, previous=previous, host="here", pid=7, is_alive=lambda pid: pid in ALIVE
    )
    assert owner == expected


def test_a_process_is_alive_until_it_has_ended():
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert process_is_alive(os.getpid())
    assert not process_is_alive(child.pid)
