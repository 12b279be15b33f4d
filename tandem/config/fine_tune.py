"""Finds the checkpoint that a config wants to start from, in whichever way it was named.

For a checkpoint ``D/ckpt-1`` these all mean the same: its prefix ``D/ckpt-1``, one of its files
(``.index``, ``.meta``, ``.data-00000-of-00001``), the folder ``D``, and its state file
``D/checkpoint``. The state file may name the place where the checkpoint was written; it's looked
for beside the state file too, as folders move. TensorFlow before 0.12 wrote one file per
checkpoint (``model.ckpt-400000``), which is found as well.
"""

from __future__ import annotations

import enum
import glob
import logging
import os
import re
from typing import NamedTuple

from tandem.config.files import check_path, read_text, reason_of
from tandem.errors import FineTuneError

_STATE_FILE = "checkpoint"
_DATA_SUFFIX = re.compile(r"\.data-(\d{5})-of-(\d{5})$")
_SUFFIX = re.compile(r"\.(index|meta|data-\d{5}-of-\d{5})$")
_STATE_PATH = re.compile(r'^\s*model_checkpoint_path\s*:\s*"((?:\\.|[^"\\])*)"', re.MULTILINE)
_STEP = re.compile(r"-(\d+)$")
# Both layouts are LevelDB tables at heart, which end with this number.
_TABLE_MAGIC = bytes.fromhex("57fb808b247547db")
# Where a checkpoint lies within an unpacked model of the TF2 zoo, and within a run of Tandem's.
_SUBFOLDERS = ("checkpoint", "checkpoints")

_logger = logging.getLogger(__name__)


class CheckpointLayout(enum.Enum):
    """How a checkpoint is spread over files."""

    BUNDLE = "prefix.index and prefix.data-*"
    SINGLE_FILE = "one file, as TensorFlow before 0.12 wrote it"


class CheckpointFiles(NamedTuple):
    """A checkpoint that is there, all of it."""

    prefix: str
    """What TensorFlow's readers take: the path without ``.index`` or ``.data-...``."""
    layout: CheckpointLayout


def find_checkpoint(
    path: str, *, field: str = "train_config.fine_tune_checkpoint"
) -> CheckpointFiles:
    """Finds a checkpoint by its prefix, one of its files, or its folder.

    Args:
        path: as the config has it, relative to the working folder.
        field: the config's field that holds it, for messages.

    Raises:
        ConfigError: it's no local path.
        FineTuneError: there is no checkpoint, or a part of it is missing.
    """
    check_path(path, field=field)
    where = f"{field}: {path!r}"
    if os.path.isdir(path):
        return _in_folder(path, where)
    found = _at_prefix(_SUFFIX.sub("", path), where)
    if found is not None:
        return found
    if os.path.basename(path) == _STATE_FILE and os.path.isfile(path):
        return _in_folder(os.path.dirname(path) or ".", where)
    if os.path.isfile(path):
        return _single_file(path, where)
    raise FineTuneError(f"{where} doesn't exist (looked from {os.getcwd()}){_beside(path)}")


def _in_folder(folder: str, where: str) -> CheckpointFiles:
    """The checkpoint that the folder's state file names; without one, that of the highest step."""
    state_file = os.path.join(folder, _STATE_FILE)
    if os.path.isfile(state_file):
        return _named_by(state_file, where)
    prefixes = _prefixes(folder)
    if prefixes:
        return _newest(prefixes, where)
    for name in _SUBFOLDERS:
        subfolder = os.path.join(folder, name)
        if os.path.isdir(subfolder):
            return _in_folder(subfolder, where)
    raise FineTuneError(f"{where}: the folder {folder!r} has no checkpoint (no .index file)")


def _named_by(state_file: str, where: str) -> CheckpointFiles:
    folder = os.path.dirname(state_file)
    match = _STATE_PATH.search(read_text(state_file, error_class=FineTuneError))
    if match is None:
        raise FineTuneError(
            f"{where}: the state file {state_file!r} names no checkpoint"
            f"{_beside(os.path.join(folder, ''))}"
        )
    named = _unescape(match.group(1))
    base = re.split(r"[/\\]", named)[-1]
    for prefix in (os.path.join(folder, named), os.path.join(folder, base)):
        found = _at_prefix(prefix, where)
        if found is not None:
            return found
        if os.path.isfile(prefix):
            return _single_file(prefix, where)
    raise FineTuneError(
        f"{where}: the state file {state_file!r} names {named!r}, which is neither there nor in "
        f"its folder{_beside(os.path.join(folder, base))}"
    )


def _unescape(text: str) -> str:
    """Undoes the escapes that TensorFlow writes, octal ones for letters beyond ASCII mostly."""

    def byte(match: re.Match[bytes]) -> bytes:
        octal, other = match.groups()
        return bytes([int(octal, 8) & 0xFF]) if octal else bytes(other)

    escaped = re.sub(rb"\\(?:([0-7]{1,3})|(.))", byte, text.encode(), flags=re.DOTALL)
    return escaped.decode("utf-8", errors="replace")


def _newest(prefixes: list[str], where: str) -> CheckpointFiles:
    steps = {prefix: _STEP.search(prefix) for prefix in prefixes}
    if len(prefixes) > 1 and not all(steps.values()):
        names = ", ".join(os.path.basename(prefix) for prefix in prefixes)
        raise FineTuneError(f"{where}: the folder has several checkpoints ({names}); name one")
    newest = max(prefixes, key=lambda prefix: int(m.group(1)) if (m := steps[prefix]) else 0)
    _logger.info("%s has no state file; took its newest checkpoint %s", where, newest)
    found = _at_prefix(newest, where)
    if found is None:
        raise FineTuneError(f"{where}: {newest}.index vanished while it was looked at")
    return found


def _at_prefix(prefix: str, where: str) -> CheckpointFiles | None:
    """The checkpoint of this prefix; None if there is no trace of it."""
    shards = sorted(glob.glob(glob.escape(prefix) + ".data-?????-of-?????"))
    index = prefix + ".index"
    if not os.path.isfile(index):
        if shards:
            raise FineTuneError(f"{where}: {shards[0]!r} is there, but {index!r} is missing")
        return None
    if not _is_table(index):
        raise FineTuneError(f"{where}: {index!r} is cut off or not a checkpoint's index")
    found = {match.groups() for shard in shards if (match := _DATA_SUFFIX.search(shard))}
    totals = sorted({total for _, total in found}) or ["00001"]
    missing = [
        f"{prefix}.data-{number:05d}-of-{totals[0]}"
        for number in range(int(totals[0]))
        if (f"{number:05d}", totals[0]) not in found
    ]
    if missing:
        raise FineTuneError(f"{where}: {index!r} is there, but {missing[0]!r} is missing")
    return CheckpointFiles(prefix, CheckpointLayout.BUNDLE)


def _single_file(path: str, where: str) -> CheckpointFiles:
    if not _is_table(path):
        raise FineTuneError(
            f"{where} is no TensorFlow checkpoint; expected a prefix such as 'model.ckpt-1000', "
            "one of its files, or its folder"
        )
    return CheckpointFiles(path, CheckpointLayout.SINGLE_FILE)


def _is_table(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - len(_TABLE_MAGIC)))
            return file.read() == _TABLE_MAGIC
    except OSError as error:
        raise FineTuneError(f"{path}: can't be read: {reason_of(error)}") from error


def _prefixes(folder: str) -> list[str]:
    """Prefixes of the checkpoints that lie in a folder, by their index files."""
    pattern = os.path.join(glob.escape(folder), "*.index")
    return [path.removesuffix(".index") for path in sorted(glob.glob(pattern))]


def _beside(path: str) -> str:
    """A hint: the checkpoints that do lie in the folder of ``path``."""
    names = [os.path.basename(prefix) for prefix in _prefixes(os.path.dirname(path) or ".")]
    return f"; its folder has {', '.join(names[-5:])}" if names else ""
