"""Checkpoints of other programs, as the Object Detection API leaves them in a `model_dir`.

    model.ckpt-400.index  model.ckpt-400.data-00000-of-00001  model.ckpt-400.meta    TF1
    ckpt-3.index          ckpt-3.data-00000-of-00002  ...                           TF2

Files that were copied out of a run of Tandem, as `ckpt-1000-2.index`, are of step 1000.

There is no commit. A checkpoint counts once its index and all parts of its data are listed: both
programs write the index after the data. Sizes, checksums and origin can't be checked, and nothing
keeps the program from deleting or rewriting a checkpoint while it is read. `UNVERIFIED` says so in
every result.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import NamedTuple

from tandem.checkpoints.names import CheckpointId

ADOPTED_ATTEMPT = 0
"""The attempt of an adopted checkpoint's id; a run's own begin at 1."""

UNVERIFIED = (
    "size and checksum of the files: there is no commit (TensorFlow's own checksums are checked)",
    "the config that it was trained with",
    "that no file was rewritten while it was read",
)

_INDEX = re.compile(r"((?:[^/]*-)?(0|[1-9][0-9]*))\.index")
_OF_A_RUN = re.compile(r"ckpt-(0|[1-9][0-9]*)-(?:0|[1-9][0-9]*)\.index")
_DATA = re.compile(r"(.+)\.data-([0-9]{5})-of-([0-9]{5})")


class AdoptedCheckpoint(NamedTuple):
    """A checkpoint without a commit: the prefix of its files' names, and the names."""

    prefix: str
    files: tuple[str, ...]


def adopted_checkpoints(
    object_names: Collection[str],
) -> Mapping[CheckpointId, AdoptedCheckpoint]:
    """The whole checkpoints at the top of a folder, by the number that ends their prefix.

    That is the step for TF1, and the count of saves for TF2; with a run's the attempt ends it, and
    the step stands before. Of two prefixes with the same number
    the first by name counts.
    """
    parts: dict[str, dict[str, set[str]]] = {}
    for name in object_names:
        if (match := _DATA.fullmatch(name)) is not None:
            parts.setdefault(match[1], {}).setdefault(match[3], set()).add(match[2])
    found: dict[CheckpointId, AdoptedCheckpoint] = {}
    for name in sorted(object_names):
        match = _INDEX.fullmatch(name)
        if match is None:
            continue
        total = _whole(parts.get(match[1], {}))
        if total is not None:
            data = [f"{match[1]}.data-{n:05d}-of-{total}" for n in range(int(total))]
            of_a_run = _OF_A_RUN.fullmatch(name)
            step = int(of_a_run[1] if of_a_run else match[2])
            checkpoint = CheckpointId(step, ADOPTED_ATTEMPT)
            found.setdefault(checkpoint, AdoptedCheckpoint(match[1], (name, *data)))
    return dict(sorted(found.items()))


def _whole(parts: Mapping[str, Collection[str]]) -> str | None:
    """The number of parts, as written, of which all are there."""
    return next((total for total, found in parts.items() if len(found) == int(total) > 0), None)
