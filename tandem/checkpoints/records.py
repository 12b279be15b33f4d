"""Records: the small JSON objects that every fact of a run is written as.

    {"checksum": "crc32c:1b2c3d4e", "kind": "commit", "nonce": "...", "schema": 1, ...fields}

Keys are sorted and the layout is fixed, so the same record is always the same bytes, and bytes
that are not exactly what encoding their content gives are damaged. The checksum covers all other
keys; it is looked at first, so a flipped bit is never taken for a newer schema. Schemas to come
keep this layout; a record of a newer one is refused as a whole, since what this version doesn't
know might change the meaning of what it does know.

The nonce makes every record unlike any other of its name. With it a process can tell its own write
from another's (`tandem.checkpoints.writing`), and content hashes serve as generations.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer, ValidationError

from tandem.checkpoints.checksums import crc32c_of
from tandem.checkpoints.names import CheckpointId, parse_checkpoint_id
from tandem.errors import RunConflictError, StoreError

SCHEMA = 1


def _read_id(value: object) -> object:
    return parse_checkpoint_id(value) if isinstance(value, str) else value


CheckpointField = Annotated[
    CheckpointId, BeforeValidator(_read_id), PlainSerializer(str, return_type=str)
]
"""A `CheckpointId` that is written as `"1000-2"`."""


class Facts(BaseModel):
    """A frozen group of fields that is part of a record."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Record(Facts):
    """A record; subclasses name their `kind`."""

    kind: ClassVar[str]
    nonce: str


RecordType = TypeVar("RecordType", bound=Record)


def encode(record: Record) -> bytes:
    """The bytes of a record."""
    payload = record.model_dump(mode="json")
    payload |= {"kind": record.kind, "schema": SCHEMA}
    return _layout(payload | {"checksum": _checksum(payload)})


def decode(data: bytes, record_type: type[RecordType], *, name: str) -> RecordType:
    """Reads a record.

    Args:
        data: the object's bytes.
        record_type: the record it must be.
        name: the object's name, for messages.

    Raises:
        StoreError: the bytes are damaged, or not such a record.
        RunConflictError: a newer version of Tandem wrote it.
    """
    payload = _checked_payload(data, name=name)
    _refuse_other_schemas(payload.pop("schema", None), name=name)
    kind = payload.pop("kind", None)
    if kind != record_type.kind:
        raise StoreError(f"{name} holds a record of kind {kind!r}, not {record_type.kind!r}")
    try:
        return record_type.model_validate(payload)
    except ValidationError as error:
        raise StoreError(f"{name} is not a valid {record_type.kind} record: {error}") from error


def _checked_payload(data: bytes, *, name: str) -> dict[str, Any]:
    try:
        payload = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{name} is damaged: not JSON ({error})") from error
    if not isinstance(payload, dict) or _layout(payload) != data:
        raise StoreError(f"{name} is damaged: not laid out as records are")
    found = payload.pop("checksum", None)
    expected = _checksum(payload)
    if found != expected:
        raise StoreError(f"{name} is damaged: its checksum is {found}, its content's {expected}")
    return payload


def _refuse_other_schemas(schema: object, *, name: str) -> None:
    if schema == SCHEMA:
        return
    if isinstance(schema, int) and schema > SCHEMA:
        raise RunConflictError(
            f"{name} was written by a newer version of Tandem (schema {schema}; this version reads "
            f"{SCHEMA}): use that version, or another run folder"
        )
    raise StoreError(f"{name} has the schema {schema!r}; known is {SCHEMA}")


def _checksum(payload: dict[str, Any]) -> str:
    return f"crc32c:{crc32c_of(_layout(payload)):08x}"


def _layout(payload: dict[str, Any]) -> bytes:
    text = json.dumps(payload, sort_keys=True, indent=1, ensure_ascii=False)
    return text.encode("utf-8", errors="surrogatepass") + b"\n"
