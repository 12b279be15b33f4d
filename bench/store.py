"""What saving costs training, and how the store compares with plain copies of the same bytes.

Usage: .venv/bin/python -m bench.store [--quick] [--mb 17 500] [--rounds 7] [--json]

- Training time lost: a save and the 20 steps after it, less 20 steps without a save (those before
  and after); ours and a blocking save (SaveV2, fsync of files and folder) take turns in a process.
  Two kinds of steps: those that leave a core free, as where an accelerator computes, and those
  that use all cores.
- Save to committed, with nothing else to do: against a copy with fsync on the same disk, and
  against google-cloud-storage's own upload to the same (fake) bucket.
- SIGTERM to committed in a bucket that takes 100 MB/s: when idle, and just after a save has begun.
  The bucket's throttle is set so that a plain upload of the same size takes what 100 MB/s say, as
  the fake server begins to take an object in only when the last byte has come.
- Operations per hour of an evaluator that has nothing to do.
All figures are medians, and a range beside them.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.store_polls import operations_per_hour
from tests.rig.gcs import BUCKET, GcsServer, running_gcs

_ROOT = Path(__file__).resolve().parent.parent
_SLOW_BYTES_PER_SECOND = 100e6
_STOP_MB = 500.0


def main() -> None:
    options = _arguments()
    results: dict[str, Any] = {"machine": _machine(), "lost": [], "committed": [], "stop": []}
    _say(options, f"{results['machine']}\n")
    _lost(options, results)
    _committed(options, results)
    _stop(options, results)
    _polls(options, results)
    if options.json:
        print(json.dumps(results, indent=2))


def _lost(options: argparse.Namespace, results: dict[str, Any]) -> None:
    _say(options, "## Training time lost by a save, over it and the 20 steps after it\n")
    _say(options, "| state | steps | step | blocking | ours | share | of ours, standing still |")
    _say(options, "|---|---|---:|---:|---:|---:|---:|")
    for megabytes in options.mb:
        for kind, threads in (("leave a core free", _cores() - 1), ("use all cores", _cores())):
            found = _work(
                "lost", f"--mb={megabytes}", f"--threads={threads}", f"--rounds={options.rounds}"
            )
            none = statistics.median(found["none"])
            row = {
                "mb": megabytes,
                "steps": kind,
                "step_seconds": none / 20,
                "blocking_seconds": statistics.median(found["blocking"]),
                "ours_seconds": statistics.median(found["ours"]),
                "stall_seconds": statistics.median(found["stall"]),
                "raw": found,
            }
            results["lost"].append(row)
            _say(
                options,
                f"| {megabytes:g} MB | {kind} | {_ms(none / 20)} | {_spread(found['blocking'])} | "
                f"{_spread(found['ours'])} | "
                f"{100 * row['ours_seconds'] / row['blocking_seconds']:.0f} % | "
                f"{_spread(found['stall'])} |",
            )


def _committed(options: argparse.Namespace, results: dict[str, Any]) -> None:
    _say(options, "\n## From the save to the commit\n")
    _say(
        options,
        "| state | where | plain | SaveV2, fsync | ours | of plain | tidied up |\n"
        "|---|---|---:|---:|---:|---:|---:|",
    )
    rounds = f"--rounds={options.rounds}"
    for megabytes in options.mb:
        with running_gcs() as server:
            for where, more in (
                ("local", []),
                ("bucket", [f"--url={server.url}", f"--bucket={BUCKET}"]),
            ):
                found = _work(where, f"--mb={megabytes}", rounds, *more)
                plain, ours = statistics.median(found["plain"]), statistics.median(found["ours"])
                row = {"mb": megabytes, "where": where, "plain_seconds": plain}
                row |= {"ours_seconds": ours, "times": ours / plain, "raw": found}
                results["committed"].append(row)
                _say(
                    options,
                    f"| {megabytes:g} MB | {where} | {_spread(found['plain'])} | "
                    f"{_spread(found['files'])} | {_spread(found['ours'])} | {ours / plain:.2f} | "
                    f"{_spread(found['done'])} |",
                )


def _stop(options: argparse.Namespace, results: dict[str, Any]) -> None:
    megabytes = min(_STOP_MB, max(options.mb))
    rate, plain = _throttle(megabytes)
    _say(options, f"\n## SIGTERM to committed, {megabytes:g} MB to a bucket that takes 100 MB/s\n")
    results["plain_upload_seconds"] = plain
    _say(options, f"A plain upload of as much takes {plain:.2f} s.\n")
    _say(options, "| when it comes | seconds | of them, the step |\n|---|---:|---:|")
    moments = (
        ("nothing is under way", None),
        ("a save has just begun", 0.0),
        ("a save is half done", 0.5 * megabytes * 1e6 / _SLOW_BYTES_PER_SECOND),
    )
    for when, later in moments:
        with running_gcs() as server:
            server.put_faults({"match": "", "times": None, "bytes_per_second": rate})
            seconds, step = _stopped(server, megabytes, later=later)
        results["stop"].append({"when": when, "seconds": seconds, "step_seconds": step})
        _say(options, f"| {when} | {seconds:.2f} | {step:.2f} |")


def _throttle(megabytes: float) -> tuple[float, float]:
    """The rate to let bytes pass at, and the seconds that a plain upload takes then."""
    wanted = megabytes * 1e6 / _SLOW_BYTES_PER_SECOND
    rate, plain = _SLOW_BYTES_PER_SECOND, []
    for _ in range(2):
        with running_gcs() as server:
            server.put_faults({"match": "", "times": None, "bytes_per_second": rate})
            arguments = [f"--mb={megabytes}", f"--url={server.url}", f"--bucket={BUCKET}"]
            plain = _work("upload", *arguments, "--rounds=3")["plain"]
        passing = megabytes * 1e6 / rate
        own = statistics.median(plain) - passing
        rate = megabytes * 1e6 / max(wanted - own, 0.1 * wanted)
    return rate, statistics.median(plain)


def _stopped(server: GcsServer, megabytes: float, *, later: float | None) -> tuple[float, float]:
    arguments = ["stop", f"--mb={megabytes}", f"--url={server.url}", f"--bucket={BUCKET}"]
    if later is not None:
        arguments.append("--save-first")
    with subprocess.Popen(
        _command(arguments),
        cwd=_ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(1.0 if later is None else later)
        sent_at = time.monotonic()
        process.send_signal(signal.SIGTERM)
        output = process.stdout.read()
    if process.returncode:
        sys.exit(f"ended with {process.returncode}: {' '.join(_command(arguments))}")
    found = json.loads(output)
    return found["committed_at"] - sent_at, found["step_finished_at"] - sent_at


def _polls(options: argparse.Namespace, results: dict[str, Any]) -> None:
    found = operations_per_hour()
    results["polls"] = found
    _say(options, "\n## Operations per hour of an idle evaluator that looks every 10 s\n")
    kinds = ", ".join(f"{kind} {number}" for kind, number in sorted(found.items()))
    _say(options, f"{sum(found.values())}: {kinds}")


def _work(*arguments: str) -> dict[str, Any]:
    done = subprocess.run(_command(arguments), cwd=_ROOT, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(arguments)} ended with {done.returncode}:\n{done.stderr}")
    return json.loads(done.stdout)


def _command(arguments: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "bench.store_workers", *arguments]


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.0f} ms"


def _spread(seconds: Sequence[float]) -> str:
    low, high = min(seconds), max(seconds)
    return f"{_ms(statistics.median(seconds))} ({1000 * low:.0f} to {1000 * high:.0f})"


def _cores() -> int:
    return os.cpu_count() or 1


def _machine() -> str:
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return f"{_cores()} cores, load {load}, Linux {platform.release()}"


def _say(options: argparse.Namespace, text: str) -> None:
    if not options.json:
        print(text, flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="3 rounds, the smaller size only")
    parser.add_argument("--mb", type=float, nargs="+", default=[17.0, 500.0], metavar="SIZE")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true", help="one object with the raw figures too")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.mb = 3, [min(options.mb)]
    return options


if __name__ == "__main__":
    main()
