"""Whose a run folder is: `run.json`, and the refusal of other programs' checkpoints."""

from __future__ import annotations

import re
from typing import ClassVar

from tandem.checkpoints import names, writing
from tandem.checkpoints.objects import ObjectStore
from tandem.checkpoints.records import Record, decode, encode
from tandem.checkpoints.surroundings import SYSTEM, Surroundings
from tandem.errors import ObjectExistsError, RunConflictError

_TENSORFLOW_FILE = re.compile(r"checkpoint|.+\.(index|meta|data-\d{5}-of-\d{5})")


class Run(Record):
    """The run's identity, created by whichever process comes first."""

    kind: ClassVar[str] = "run"
    run_id: str
    created_at: str


def ensure_run(store: ObjectStore, *, surroundings: Surroundings = SYSTEM) -> str:
    """The run's id; writes `run.json` when there is none yet.

    Raises:
        RunConflictError: the folder holds checkpoints that no run of Tandem wrote.
    """
    refuse_foreign_folder(store)
    found = writing.find(store, names.RUN)
    if found is None:
        run = Run(
            nonce=surroundings.nonce(),
            run_id=surroundings.nonce()[:12],
            created_at=surroundings.timestamp(),
        )
        try:
            writing.create(store, names.RUN, encode(run), surroundings=surroundings)
            return run.run_id
        except ObjectExistsError:
            found = store.get(names.RUN)
    return decode(found.data, Run, name=names.RUN).run_id


def refuse_foreign_folder(store: ObjectStore) -> None:
    """Raises RunConflictError when checkpoints are there that this run did not write."""
    foreign = foreign_checkpoint_files(store.list(""))
    if foreign:
        shown = ", ".join(foreign[:4]) + (", ..." if len(foreign) > 4 else "")
        raise RunConflictError(
            f"the run folder {store.location} already has a checkpoint that this run did not write "
            f"({shown}): give a new folder for the run, and name that checkpoint in "
            "fine_tune_checkpoint if training should start from it"
        )


def foreign_checkpoint_files(object_names: list[str]) -> list[str]:
    """TensorFlow's checkpoint files, at the top or in `checkpoints/`, that are not a run's own.

    Below `checkpoints/` a run's own are named after a step and an attempt that was claimed; a state
    file is a run's own when any commit is there, since the newest commit is always kept.
    """
    attempts = {a.number for n in object_names if (a := names.parse_attempt_object(n))}
    commits = [n for n in object_names if n.endswith(names.COMMIT_SUFFIX)]

    def is_foreign(name: str) -> bool:
        folder, _, file = name.rpartition("/")
        if folder not in ("", "checkpoints") or not _TENSORFLOW_FILE.fullmatch(file):
            return False
        if name == names.STATE_FILE:
            return not commits
        parsed = names.parse_checkpoint_object(name)
        return parsed is None or parsed.checkpoint.attempt not in attempts

    return [name for name in object_names if is_foreign(name)]
