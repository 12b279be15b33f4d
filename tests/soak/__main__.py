"""`scripts/soak`: real processes on a run store, disturbed at random, and never anything lost.

    scripts/soak --rounds 200 --seed 1 --store gcs

ends with `violations: 0, rounds: 200`. With violations the exit code is 1, and each says where the
logs and copies of the run are kept.
"""

import argparse
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from services import quiet


def main():
    options = _options()
    with quiet.greetings_withheld():
        from tests.soak.rounds import soak  # noqa: PLC0415  # it imports TensorFlow
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    folder = Path(tempfile.mkdtemp(prefix="tandem-soak-"))
    began, violations = time.monotonic(), ["not finished"]
    try:
        violations = soak(
            options.store,
            num_rounds=options.rounds,
            seed=options.seed,
            folder=folder,
            say=lambda line: print(line, flush=True),
        )
    finally:
        if violations or options.keep:
            print(f"logs, runs and copies are in {folder}")
        else:
            shutil.rmtree(folder)
    print(f"{(time.monotonic() - began) / options.rounds:.1f} s a round, ends of runs included")
    print(f"violations: {len(violations)}, rounds: {options.rounds}")
    sys.exit(1 if violations else 0)


def _options():
    parser = argparse.ArgumentParser(prog="scripts/soak", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10, help="how many (default: 10)")
    parser.add_argument("--seed", type=int, default=1, help="of all chance (default: 1)")
    parser.add_argument("--store", choices=["local", "gcs"], default="local")
    parser.add_argument("--keep", action="store_true", help="keep logs and runs in any case")
    return parser.parse_args()


if __name__ == "__main__":
    main()
