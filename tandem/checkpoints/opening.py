"""From a location, as the user writes it, to the store there."""

from __future__ import annotations

from pathlib import Path

from tandem.checkpoints.local import LocalStore
from tandem.checkpoints.mounts import PROC_MOUNTS, refuse_unfit_mount
from tandem.checkpoints.objects import ObjectStore
from tandem.errors import ConfigError


def open_store(location: str, *, mount_table: Path = PROC_MOUNTS) -> ObjectStore:
    """Opens a run folder; writes nothing, the folder need not exist.

    Args:
        location: a local path.
        mount_table: where the system lists its mounts.

    Raises:
        ConfigError: the location is not one that this version can use.
    """
    if "://" in location:
        raise ConfigError(
            f"the run folder {location!r} is not a local path; this version stores runs in local "
            "folders (a disk or NFS) only"
        )
    if not location.strip():
        raise ConfigError("the run folder is empty; expected the path of a folder")
    folder = Path(location).expanduser()
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"the run folder {location!r} is a file; expected a folder")
    refuse_unfit_mount(folder, table=mount_table)
    return LocalStore(folder)
