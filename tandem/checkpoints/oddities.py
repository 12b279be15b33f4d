"""What stands in a local run folder under an object's name but is none: folders, pipes, dead links.

A store's own listing passes over them, or its reads fail at them: a pipe's would wait for ever.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection
from pathlib import Path

from tandem.checkpoints import names
from tandem.checkpoints.contents import record_type_of
from tandem.checkpoints.objects import ObjectStore


def oddities(store: ObjectStore, listed: Collection[str]) -> dict[str, str]:
    """What each oddity is, by its name; none in a bucket.

    Args:
        store: the run's.
        listed: all objects, by the store's listing.
    """
    run_file = store.local_path(names.RUN)
    if run_file is None:
        return {}
    found = {name: "it is a folder" for name in _folders(run_file.parent) if _is_ours(name)}
    for name in listed:
        path = store.local_path(name)
        if path is not None and (what := _oddity_of(path)):
            found[name] = what
    return found


def _folders(root: Path) -> list[str]:
    found = []
    for folder, folders, _ in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [(Path(folder) / name).relative_to(root).as_posix() for name in folders]
    return found


def _oddity_of(path: Path) -> str:
    """What a file is, if it is no plain one."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        return f"it is a dead link ({error.strerror})" if path.is_symlink() else ""
    return "" if stat.S_ISREG(mode) else "it is a pipe, a socket or a device"


def _is_ours(name: str) -> bool:
    """Whether an object of a run is called so."""
    part = names.parse_checkpoint_object(name)
    is_data = part is not None and names.is_data_suffix(part.suffix)
    return is_data or name == names.STATE_FILE or record_type_of(name) is not None
