"""What may happen to requests of a run in a bucket."""

from typing import NamedTuple

_STORED = {
    "commits": r"POST .*\.commit\.json$",
    "files of checkpoints": r"(POST|PUT) .*\.(index|data-\S*)$",
    "the state file": r"POST .*checkpoints/checkpoint$",
    "intents": r"POST .*\.retire\.json$",
    "leases": r"POST .*leases/\S*$",
    "tries": r"POST .*\.try-\d\.json$",
    "ledger entries": r"POST .*evaluations/[^/]*/[^./]*\.json$",
    "heartbeats": r"POST .*heartbeats/\S*$",
    "claims": r"POST .*attempts/\d*\.json$",
    "ends": r"POST .*attempts/\d*\.end\.json$",
    "deletions": "DELETE ",
}


class Trouble(NamedTuple):
    """Faults that go on for a while.

    Attributes:
        what: in words.
        faults: as `tests.rig.gcs_faults` takes them.
        seconds: for how long; None: until there is progress even so.
        needs_restart: whether only a trainer that starts or ends meets them.
    """

    what: str
    faults: list
    seconds: float | None = None
    needs_restart: bool = False


def choose(random):
    """Trouble with the store, by chance."""
    makers = {
        _refusals: 2,
        _resets: 1,
        _cut_uploads: 2,
        _cut_downloads: 2,
        _lost_answers: 6,
        _slow_reads: 1,
        _late_answers: 1,
        _flipped_bit: 1,
        _outage: 2,
    }
    (make,) = random.choices(list(makers), weights=list(makers.values()))
    return make(random)


def _refusals(random):
    status = random.choice([503, 429, 500])
    fault = {"match": "", "times": None, "probability": 0.2, "status": status}
    return Trouble(f"{status} for every fifth request", [fault])


def _resets(random):
    fault = {"match": "", "times": None, "probability": 0.1, "status": "reset"}
    return Trouble("every tenth connection reset", [fault])


def _cut_uploads(random):
    return _cut(random, "upload", _STORED["files of checkpoints"], most=900_000)


def _cut_downloads(random):
    return _cut(random, "download", "GET .*alt=media", most=20_000)


def _cut(random, what, match, *, most):
    cuts = [random.randint(0, most) for _ in range(random.randint(1, 5))]
    faults = [{"match": match, "status": "reset", "after_bytes": cut} for cut in cuts]
    return Trouble(f"connections reset in mid-{what}, after {cuts} bytes", faults)


def _lost_answers(random):
    """What a client hears that asks again after its own success."""
    what = random.choice(list(_STORED))
    status = random.choice([412, 503, "reset"]) if what != "deletions" else 503
    times = random.randint(1, 3)
    fault = {"match": _STORED[what], "status": status, "commit": True, "times": times}
    return Trouble(
        f"{times} {what} carried out, then reported as {status}",
        [fault],
        needs_restart=what in ("claims", "ends"),
    )


def _slow_reads(random):
    rate = random.choice([2e5, 1e6])
    fault = {"match": "GET ", "times": None, "bytes_per_second": rate}
    return Trouble(f"reads at {rate / 1e6:g} MB/s", [fault], 8.0)


def _late_answers(random):
    delay = random.uniform(0.5, 3.0)
    fault = {"match": "", "times": None, "probability": 0.1, "delay": delay}
    return Trouble(f"every tenth answer {delay:.1f} s late", [fault])


def _flipped_bit(random):
    return Trouble("a bit flipped on its way", [{"match": "GET .*alt=media", "flip_bit": True}])


def _outage(random):
    seconds, status = random.uniform(2.0, 6.0), random.choice([503, "reset"])
    fault = {"match": "", "times": None, "status": status}
    return Trouble(f"nothing but {status} for {seconds:.1f} s", [fault], seconds)
