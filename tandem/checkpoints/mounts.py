"""Which file system a folder is on, and whether a run can live there.

A GCS FUSE mount has neither links nor locks and shows another machine's writes late; SMB has no
links that exclude each other. Both look like folders, so they are refused by name.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from tandem.errors import ConfigError

PROC_MOUNTS = Path("/proc/mounts")

_BUCKET_MOUNTS = frozenset(
    # GKE's driver for bucket volumes mounts with the bare type "fuse".
    {"fuse", "gcsfuse", "fuse.gcsfuse", "fuse.s3fs", "fuse.goofys", "fuse.rclone", "fuse.blobfuse",
     "fuse.blobfuse2", "fuse.mount-s3"}
)  # fmt: skip
_SMB_MOUNTS = frozenset({"cifs", "smb2", "smb3", "smbfs", "fuse.smbnetfs"})


class Mount(NamedTuple):
    """A line of the table of mounts."""

    folder: Path
    type: str


def parse_mounts(table: str) -> list[Mount]:
    """Reads the text of `/proc/mounts`, where blanks in paths are octal codes."""
    lines = (line.split() for line in table.splitlines())
    return [Mount(Path(_unescape(line[1])), line[2]) for line in lines if len(line) >= 3]


def _unescape(text: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, character)
    return text


def mount_of(folder: Path, mounts: list[Mount]) -> Mount | None:
    """The mount that an absolute folder is on: the longest above it, of those the latest."""
    found = None
    for mount in mounts:
        is_above = folder.is_relative_to(mount.folder)
        if is_above and (found is None or len(mount.folder.parts) >= len(found.folder.parts)):
            found = mount
    return found


def refuse_unfit_mount(folder: Path, *, table: Path = PROC_MOUNTS) -> None:
    """Raises ConfigError when the folder is on a file system that can't hold a run."""
    if not table.exists():  # not Linux
        return
    mount = mount_of(folder.resolve(), parse_mounts(table.read_text(errors="replace")))
    if mount is None or mount.type not in _BUCKET_MOUNTS | _SMB_MOUNTS:
        return
    advice = (
        "give the bucket itself (gs://BUCKET/FOLDER)"
        if mount.type in _BUCKET_MOUNTS
        else "give a folder on a local disk or NFS, or a bucket (gs://BUCKET/FOLDER)"
    )
    raise ConfigError(
        f"the run folder {folder} is on a mount of type {mount.type} ({mount.folder}), which can "
        f"neither create a file exclusively nor lock one, so runs would be damaged: {advice}"
    )
