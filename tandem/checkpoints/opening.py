"""From a location, as the user writes it, to the store there."""

from __future__ import annotations

from pathlib import Path

from tandem.checkpoints.gcs_locations import is_remote, parse_bucket_location
from tandem.checkpoints.local import LocalStore
from tandem.checkpoints.measuring import MeasuredStore, Observer, unobserved
from tandem.checkpoints.mounts import PROC_MOUNTS, refuse_unfit_mount
from tandem.checkpoints.objects import ObjectStore
from tandem.errors import ConfigError


def open_store(
    location: str,
    *,
    credentials_seconds: float = 0.0,
    observer: Observer = unobserved,
    mount_table: Path = PROC_MOUNTS,
) -> ObjectStore:
    """Opens a run folder; writes nothing, the folder need not exist.

    Args:
        location: a local path, or `gs://BUCKET/PREFIX`.
        credentials_seconds: how long to wait for Google Cloud credentials. A pod that has just been
            started may be there before its metadata server is.
        observer: is told of each request.
        mount_table: where the system lists its mounts.

    Raises:
        ConfigError: the location is not one that can be used, or credentials are missing.
    """
    if not location.strip():
        raise ConfigError("the run folder is empty; expected a local path or gs://BUCKET/PREFIX")
    if is_remote(location):
        bucket_location = parse_bucket_location(location)
        # Google's client takes a third of a second to import, which local runs do without.
        from tandem.checkpoints.gcs_clients import open_gcs_store  # noqa: PLC0415

        return open_gcs_store(
            bucket_location, credentials_seconds=credentials_seconds, observer=observer
        )
    try:
        folder = Path(location).expanduser()
    except RuntimeError as error:  # ~somebody
        raise ConfigError(f"the run folder {location!r} names a user that isn't there") from error
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"the run folder {location!r} is a file; expected a folder")
    refuse_unfit_mount(folder, table=mount_table)
    store = LocalStore(folder)
    return store if observer is unobserved else MeasuredStore(store, observer)
