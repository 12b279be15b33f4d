"""TensorFlow's own state file, `checkpoints/checkpoint`, so that plain TensorFlow finds the newest.

It is a projection: read its generation, then list, name the readable checkpoints of the line, and
replace it if its generation is still the same. In that order a listing that is older than another
writer's is never put over it. A comment carries a nonce, so that its content never repeats.

It gives no timestamps: so a `CheckpointManager` on the folder finds the newest, but takes none of
the checkpoints for its own to delete.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from tandem.checkpoints import names, writing
from tandem.checkpoints.lines import LineReader
from tandem.checkpoints.names import CheckpointId
from tandem.checkpoints.objects import ObjectStore
from tandem.checkpoints.surroundings import SYSTEM, Surroundings
from tandem.errors import GenerationMismatchError

_NAMED = re.compile(r'^(?:all_)?model_checkpoint_paths?: "(.*)"$', re.MULTILINE)


def write_state_file(
    store: ObjectStore, *, lines: LineReader | None = None, surroundings: Surroundings = SYSTEM
) -> None:
    """Brings the state file up to date; after a commit, a resumption, an end, and in retiring.

    Args:
        store: the run's store.
        lines: a reader of this store's line, which has read older attempts already.
        surroundings: randomness.
    """
    lines = lines or LineReader(store)
    while True:
        standing = writing.find(store, names.STATE_FILE)
        checkpoints = lines.read().readable
        if not checkpoints and standing is None:
            return
        data = state_file(checkpoints, nonce=surroundings.nonce()).encode()
        generation = standing.stat.generation if standing else None
        try:
            writing.replace(
                store, names.STATE_FILE, data, generation=generation, surroundings=surroundings
            )
        except GenerationMismatchError:
            continue  # someone else wrote it; whose listing was the later one is unknown
        return


def state_file(checkpoints: Sequence[CheckpointId], *, nonce: str) -> str:
    """The text of a `CheckpointState` message; names are relative, so the folder can be moved."""
    paths = [json.dumps(f"ckpt-{checkpoint}") for checkpoint in checkpoints]
    lines = [f"# Written by Tandem; derived from the commits. {nonce}"]
    lines += [f"model_checkpoint_path: {path}" for path in paths[-1:]]
    lines += [f"all_model_checkpoint_paths: {path}" for path in paths]
    return "\n".join(lines) + "\n"


def paths_named(text: str) -> tuple[str, ...]:
    """The checkpoints that a state file names, each once, as they are written there."""
    return tuple(dict.fromkeys(_NAMED.findall(text)))
