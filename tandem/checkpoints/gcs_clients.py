"""Opening a run in Google Cloud Storage with this machine's credentials."""

from __future__ import annotations

import weakref

from google.auth.exceptions import GoogleAuthError
from google.cloud import storage

from tandem.checkpoints.gcs import GcsStore
from tandem.checkpoints.gcs_errors import credentials_error
from tandem.checkpoints.gcs_locations import BucketLocation


def open_gcs_store(location: BucketLocation) -> GcsStore:
    """Opens a run folder, with the client's own ways to credentials and endpoint; asks nothing.

    Raises:
        ConfigError: there are no credentials.
    """
    try:
        client = storage.Client(project=None)  # buckets are named without their project
    except GoogleAuthError as error:
        raise credentials_error(str(location), error) from error
    store = GcsStore(location.bucket, location.prefix, client=client)
    weakref.finalize(store, client.close)
    return store
