"""Who may go on with a run where nobody says so."""

import os
import subprocess
import sys

import pytest

from services.trainer.ownership import owner_of, process_is_alive
from tandem.checkpoints.attempts import Attempt

ALIVE, DEAD = {7, 9}, 8


OURS = "process 7 on here"


def attempt(owner, holder):
    return Attempt(
        nonce="n",
        number=1,
        resumed_from=None,
        owner=owner,
        holder=holder,
        image="",
        config_digest="",
        config_text="",
        config_diff=(),
        claimed_at="",
    )


@pytest.mark.parametrize(
    ("stated", "previous", "expected"),
    [
        (None, None, OURS),
        ("job-1", attempt("process 8 on here", "here/8"), "job-1"),
        (None, attempt("process 8 on here", "here/8"), "process 8 on here"),
        (None, attempt("process 9 on here", "here/9"), OURS),
        (None, attempt("process 8 on here", "here/9"), OURS),
        (None, attempt("process 7 on here", "here/7"), OURS),
        (None, attempt("process 8 on there", "there/8"), OURS),
        (None, attempt("job-1", "here/8"), OURS),
    ],
    ids=[
        "the first attempt is our own",
        "a stated owner wins",
        "a dead forerunner on this machine is succeeded",
        "a living one is not",
        "nor one that lives in the name of one that is gone",
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
