"""`scripts/faults`: injects each of 24 faults, and asks `tandem status` what is wrong.

Ends with `right: 24 of 24, false healthy: 0`. Exits with 0 only when at least 22 of the 24 were
right (of fewer faults: all), no answer was a false `healthy`, and each came within 2 s.
"""

import argparse
import shutil
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from services import quiet
from tests.rig.cluster import require_node


def main():
    options = _options()
    with quiet.greetings_withheld():
        from tests.faults.catalogue import FAULTS, Where  # noqa: PLC0415  # TensorFlow comes along
        from tests.faults.playing import Player  # noqa: PLC0415
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    wanted = [fault for fault in FAULTS if not options.only or fault.number in options.only]
    needs_node = any(fault.where is Where.NODE for fault in wanted)
    if options.needs_node:
        sys.exit(0 if needs_node else 1)
    if options.skip_cluster:
        no_node = "--skip-cluster"
    elif needs_node:
        no_node = _why_no_node()
    else:
        no_node = ""
    left_out = {f.number: no_node for f in wanted if no_node and f.where is Where.NODE}
    folder = Path(tempfile.mkdtemp(prefix="tandem-faults-"))
    began = time.monotonic()
    player = Player(folder, say=_say, stop=threading.Event())
    tally = player.play([f for f in wanted if f.number not in left_out], workers=options.workers)
    tally.not_run.update(left_out)
    *table, last = tally.lines()
    print("\n".join(table))
    if tally.exit_code or options.keep:
        print(f"logs and answers are in {folder}")
    else:
        shutil.rmtree(folder)
    print(f"{(time.monotonic() - began) / 60:.1f} minutes")
    print(last, flush=True)
    sys.exit(tally.exit_code)


def _say(row):
    state = "right" if row.is_right else f"wrong {row.trouble}"
    print(f"{row.number:>2} {row.what}: {state}, {row.seconds:.0f} s in all", flush=True)


def _why_no_node():
    try:
        require_node()
    except pytest.skip.Exception as reason:
        return str(reason)
    return ""


def _options():
    parser = argparse.ArgumentParser(prog="scripts/faults", description=__doc__.splitlines()[0])
    parser.add_argument("--only", type=_numbers, default=(), metavar="N,N", help="only these")
    parser.add_argument(
        "--skip-cluster", action="store_true", help="leave out those that need a Kubernetes node"
    )
    parser.add_argument("--workers", type=int, default=2, help="faults at a time (default: 2)")
    parser.add_argument(
        "--needs-node",
        action="store_true",
        help="only say, by exit code 0 or 1, whether a Kubernetes node is needed for that",
    )
    parser.add_argument("--keep", action="store_true", help="keep logs and answers in any case")
    return parser.parse_args()


def _numbers(text):
    return {int(part) for part in text.split(",")}


if __name__ == "__main__":
    main()
