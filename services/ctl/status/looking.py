"""Looks at a run folder, no longer than a person waits, and says so when that wasn't enough."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from services.ctl.status.hurrying import Hurry, TooLateError
from services.ctl.status.snapshots import Snapshot
from services.ctl.status.stores import read_facts
from tandem.checkpoints.gcs_locations import is_remote, parse_bucket_location
from tandem.checkpoints.names import ATTEMPTS, RUN
from tandem.checkpoints.objects import ObjectStore
from tandem.checkpoints.opening import open_store
from tandem.checkpoints.retrying import Backoff
from tandem.errors import (
    BucketMissingError,
    StoreError,
    StoreRefusedError,
    StoreUnavailableError,
)
from tandem.status.facts import Access, AccessProblem, RunFacts

_ANSWER_SECONDS = 5.0  # the deadline of the look comes first
_IMPATIENT = Backoff(initial_seconds=0.1, max_seconds=0.4, deadline_seconds=0.8)


def look_at(
    location: str, hurry: Hurry, *, wall_clock: Callable[[], float] = time.time
) -> RunFacts:
    """What the run folder says.

    Raises:
        ConfigError: the location is none that can be a run folder.
    """
    try:
        store = hurry.result(hurry.ask(lambda: open_hastily(location)))
        snapshot = Snapshot(store, hurry)
        if RUN not in snapshot.times and not snapshot.list(ATTEMPTS):
            return _inaccessible(location, Access.NO_RUN, _what_is_there(location, snapshot))
        facts = read_facts(snapshot, wall_clock=wall_clock)
    except TooLateError:
        text = f"{location} did not answer within {hurry.seconds_gone:.1f} s"
        return _inaccessible(location, Access.SLOW, text)
    except StoreRefusedError as error:
        return _inaccessible(location, Access.REFUSED, str(error))
    except BucketMissingError as error:
        return _inaccessible(location, Access.MISSING, str(error))
    except StoreUnavailableError as error:
        return _inaccessible(location, Access.UNAVAILABLE, str(error))
    except StoreError as error:
        is_refused = isinstance(error.__cause__, PermissionError)
        kind = Access.REFUSED if is_refused else Access.DAMAGED
        return _inaccessible(location, kind, str(error))
    return replace(facts, location=location, look_seconds=hurry.seconds_gone)


def open_hastily(location: str) -> ObjectStore:
    """Opens a run folder whose store is not asked again and again."""
    if not is_remote(location):
        return open_store(location)
    # Google's client takes a third of a second to import, which local runs do without.
    from tandem.checkpoints.gcs import GcsStore  # noqa: PLC0415
    from tandem.checkpoints.gcs_clients import new_client_for  # noqa: PLC0415

    bucket = parse_bucket_location(location)
    return GcsStore(
        bucket.bucket,
        bucket.prefix,
        client=new_client_for(bucket),
        backoff=_IMPATIENT,
        answer_seconds=_ANSWER_SECONDS,
    )


def _inaccessible(location: str, kind: Access, text: str) -> RunFacts:
    return RunFacts(location, access=AccessProblem(kind, text))


def _what_is_there(location: str, snapshot: Snapshot) -> str:
    if not is_remote(location) and not Path(location).expanduser().exists():
        hint = "" if "/" in location else "; the name of a release needs -n NAMESPACE beside it"
        return f"{location} does not exist (yet){hint}"
    if not snapshot.times:
        return f"{location} is empty: neither a trainer nor an evaluator has begun"
    return f"{location} is no run folder: it has no run.json"
