"""Google's client, with this machine's credentials, and a run opened with it."""

from __future__ import annotations

import weakref

from google.auth.exceptions import GoogleAuthError
from google.cloud import storage

from tandem.checkpoints.gcs import GcsStore
from tandem.checkpoints.gcs_errors import credentials_error
from tandem.checkpoints.gcs_locations import BucketLocation
from tandem.checkpoints.measuring import Observer, unobserved
from tandem.checkpoints.retrying import Backoff
from tandem.checkpoints.surroundings import SYSTEM, Surroundings
from tandem.errors import StoreRefusedError


def open_gcs_store(
    location: BucketLocation,
    *,
    credentials_seconds: float,
    observer: Observer = unobserved,
    surroundings: Surroundings = SYSTEM,
) -> GcsStore:
    """Opens a run folder, with the client's own ways to credentials and endpoint; asks nothing.

    Args:
        location: of the folder.
        credentials_seconds: how long to wait for credentials.
        observer: is told of each request.
        surroundings: clock, sleep, randomness.

    Raises:
        StoreRefusedError: there are no credentials.
    """
    pauses = Backoff(deadline_seconds=credentials_seconds).pauses(surroundings)
    while True:
        try:
            client = new_client_for(location)
            break
        except StoreRefusedError:
            pause = next(pauses, None)
            if pause is None:
                raise
        surroundings.sleep(pause)
    store = GcsStore(location.bucket, location.prefix, client=client, observer=observer)
    weakref.finalize(store, client.close)
    return store


def new_client_for(location: BucketLocation) -> storage.Client:
    """A client with this machine's credentials.

    Raises:
        StoreRefusedError: there are none, or they can't be read.
    """
    try:
        return new_client(project=None)  # buckets are named without their project
    except GoogleAuthError as error:
        raise credentials_error(str(location), error) from error


def new_client(**arguments: object) -> storage.Client:
    """A client that makes one request for a call.

    Google's looks the bucket up as well, in a thread, after its first call and after each object
    that was not found: for traces, which nobody makes here, and with a permission of its own.
    """
    client = storage.Client(**arguments)
    client._bucket_metadata_cache = None
    return client
