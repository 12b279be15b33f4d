"""The run store in Google Cloud Storage: the objects below a bucket's prefix.

- create and replace are one request each, with a precondition on the generation, and are never
  repeated from here: `tandem.checkpoints.writing` settles an unclear answer by reading back. Only
  files (whose names are unique to an attempt) are uploaded in sessions that resume.
- delete has the same precondition; an unclear answer is settled by looking whether it is gone.
- What is put is compared with what the store says it has: small objects send their crc32c along,
  so that it refuses what changed on the way, files are summed as they go.
- Reads, listings and deletions are repeated with back-off. A download goes in ranges, all of one
  generation, each repeated by itself.
- Bytes that arrive with another crc32c than the store has are read again, twice if need be: what
  differs then is what is stored.

Thread-safe, like the client's session. `tandem.checkpoints.gcs_errors` knows Google's exceptions.
"""

from __future__ import annotations

import base64
import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, TypeVar

from google.api_core.retry import Retry
from google.cloud import storage

from tandem.checkpoints.checksums import Summary, Summing, crc32c_of
from tandem.checkpoints.gcs_errors import is_passing_in_session, translated
from tandem.checkpoints.gcs_locations import BucketLocation
from tandem.checkpoints.measuring import Observer, Operation, observed, unobserved
from tandem.checkpoints.objects import (
    ObjectStat,
    StoredObject,
    ignoring,
    is_object_name,
    nothing,
    refuse_other_names,
)
from tandem.checkpoints.retrying import DEFAULT_BACKOFF, Backoff, retried
from tandem.checkpoints.surroundings import SYSTEM, Surroundings
from tandem.errors import (
    CheckpointDamagedError,
    GenerationMismatchError,
    ObjectExistsError,
    ObjectNotFoundError,
    StoreError,
    StoreUnavailableError,
)

_UPLOAD_CHUNK_BYTES = 100 << 20
_DOWNLOAD_RANGE_BYTES = 16 << 20
_CONNECT_SECONDS = 10.0
_MAX_READS = 3  # of an object whose bytes don't fit the store's own checksum
_NO_CACHE = "no-store"  # else the objects of a public bucket may be served an hour late
_RANGE_NOT_SATISFIABLE = 416

_Result = TypeVar("_Result")


class GcsStore:
    """A run folder in a bucket; the caller closes the client."""

    def __init__(
        self,
        bucket: str,
        prefix: str,
        *,
        client: storage.Client,
        surroundings: Surroundings = SYSTEM,
        backoff: Backoff = DEFAULT_BACKOFF,
        answer_seconds: float = 30.0,
        upload_chunk_bytes: int = _UPLOAD_CHUNK_BYTES,
        observer: Observer = unobserved,
    ) -> None:
        """Takes a bucket that exists.

        Args:
            bucket: its name.
            prefix: without a slash at its end; empty for the whole bucket.
            client: Google's.
            surroundings: clock, sleep, randomness.
            backoff: for reads, listings, deletions and upload sessions.
            answer_seconds: how long the store may be silent before a request counts as failed.
            upload_chunk_bytes: what a reset costs at most, and what an upload takes of memory; each
                chunk waits for an answer. A multiple of 256 KiB.
            observer: is told of each request, also of one that is repeated; of an upload in a
                session as one, and of each error in it.
        """
        self._location = BucketLocation(bucket, prefix)
        self._root = f"{prefix}/" if prefix else ""
        self._client = client
        self._bucket = client.bucket(bucket)
        self._surroundings = surroundings
        self._backoff = backoff
        self._upload_chunk_bytes = upload_chunk_bytes
        self._observer = observer
        self._timeout = (min(_CONNECT_SECONDS, answer_seconds), answer_seconds)

    @property
    def location(self) -> str:
        """The folder, for messages."""
        return str(self._location)

    @property
    def principal(self) -> str | None:
        """The service account that the store knows us by; None while nobody has said."""
        email = getattr(self._client._credentials, "service_account_email", None)
        return email if isinstance(email, str) and "@" in email else None

    def create(self, name: str, data: bytes) -> ObjectStat:
        """Puts an object that must not exist yet."""
        try:
            return self._put("create", name, data, generation=0)
        except GenerationMismatchError as error:
            raise ObjectExistsError(f"{name} exists already") from error

    def create_from_file(
        self, name: str, path: Path, *, on_bytes: Callable[[int], None] = ignoring
    ) -> ObjectStat:
        """Puts a file's bytes, in an upload session that resumes when they are many.

        They are summed as they go, so that a large file is read once.
        """
        with path.open("rb") as file:
            source = _Source(file, on_bytes)
            try:
                stat = self._upload(name, source, size=os.fstat(file.fileno()).st_size)
            except GenerationMismatchError as error:
                raise ObjectExistsError(f"{name} exists already") from error
        return _compared(stat, source.summary())

    def replace(self, name: str, data: bytes, *, generation: str | None) -> ObjectStat:
        """Puts an object if its generation is still the given one."""
        return self._put("replace", name, data, generation=int(generation or 0))

    def get(self, name: str) -> StoredObject:
        """Reads a whole object."""
        for _ in range(_MAX_READS):
            stored, is_sound = self._retried(lambda: self._get(name))
            if is_sound:
                break
        return stored

    def read(self, name: str, *, start: int, size: int) -> bytes:
        """Reads part of an object."""
        if size <= 0:
            self.stat(name)
            return b""
        return self._retried(
            lambda: self._read("read", self._blob(name), name, start=start, size=size)
        )

    def stat(self, name: str) -> ObjectStat:
        """Describes an object."""
        return self._retried(lambda: self._stat(name))

    def generation(self, name: str) -> str:
        """An object's generation."""
        return self.stat(name).generation

    def list_times(self, prefix: str) -> dict[str, float]:
        """Like `list`, with when each was put, by the store's clock, in seconds since 1970."""
        found = self._retried(lambda: self._list(prefix))
        return {name: found[name] for name in sorted(filter(is_object_name, found))}

    def list(self, prefix: str) -> list[str]:
        """All names that begin with the prefix, sorted."""
        return sorted(filter(is_object_name, self._retried(lambda: self._list(prefix))))

    def delete(self, name: str, *, generation: str) -> None:
        """Removes an object if its generation is still the given one."""
        pauses = self._backoff.pauses(self._surroundings)
        is_unclear = False
        while True:
            try:
                return self._delete(name, generation)
            except ObjectNotFoundError:
                if is_unclear:
                    return
                raise
            except StoreUnavailableError:
                is_unclear = True
                pause = next(pauses, None)
                if pause is None:
                    raise
            self._surroundings.sleep(pause)

    def download(
        self, name: str, path: Path, *, on_piece: Callable[[], None] = nothing
    ) -> ObjectStat:
        """Writes an object's bytes to a new file, in ranges of one generation."""
        with path.open("xb") as file:
            for _ in range(_MAX_READS):
                file.seek(0)
                file.truncate()
                stat, summary = self._download(name, file, on_piece)
                if summary.crc32c == stat.crc32c:
                    break
        return stat._replace(size=summary.size, crc32c=summary.crc32c)

    def local_path(self, name: str) -> Path | None:
        """None: no object is a file here."""
        return None

    def _retried(self, call: Callable[[], _Result]) -> _Result:
        return retried(call, backoff=self._backoff, surroundings=self._surroundings)

    def _blob(self, name: str, **arguments: object) -> storage.Blob:
        refuse_other_names(name)
        return self._bucket.blob(self._root + name, **arguments)

    def _new_blob(self, name: str, crc32c: int | None = None) -> storage.Blob:
        blob = self._blob(name, chunk_size=self._upload_chunk_bytes)
        if crc32c is not None:
            blob.crc32c = base64.b64encode(crc32c.to_bytes(4, "big")).decode()
        blob.cache_control = _NO_CACHE
        blob.content_type = (
            "application/json" if name.endswith(".json") else "application/octet-stream"
        )
        return blob

    def _observed(self, operation: Operation) -> contextlib.AbstractContextManager[None]:
        return observed(operation, self._observer, monotonic=self._surroundings.monotonic)

    def _put(self, operation: Operation, name: str, data: bytes, *, generation: int) -> ObjectStat:
        blob = self._new_blob(name, crc32c_of(data))
        with (
            self._observed(operation),
            translated(self.location, name, not_found_is_bucket=True),
        ):
            blob.upload_from_string(
                data,
                content_type=blob.content_type,
                if_generation_match=generation,
                checksum=None,  # it is among the blob's fields
                retry=None,
                timeout=self._timeout,
            )
        return _stat_of(blob, name)

    def _upload(self, name: str, source: _Source, *, size: int) -> ObjectStat:
        blob = self._new_blob(name)
        try:
            with (
                self._observed("upload"),
                translated(self.location, name, not_found_is_bucket=True),
            ):
                blob.upload_from_file(
                    source,
                    size=size,
                    if_generation_match=0,
                    checksum=None,
                    retry=self._session_retry(),
                    timeout=self._timeout,
                )
        except ValueError as error:  # the store kept only part of a chunk; the client can't go on
            raise StoreUnavailableError(f"{self.location}: {name}: {error}") from error
        return _stat_of(blob, name)

    def _session_retry(self) -> Retry:
        return Retry(
            predicate=is_passing_in_session,
            initial=self._backoff.initial_seconds,
            multiplier=self._backoff.factor,
            maximum=self._backoff.max_seconds,
            timeout=self._backoff.deadline_seconds,
            on_error=self._tell_of_error_in_session,
        )

    def _tell_of_error_in_session(self, error: Exception) -> None:
        """It is repeated, so that the session as a whole may end well."""
        self._observer("upload", "error", None)

    def _get(self, name: str) -> tuple[StoredObject, bool]:
        blob = self._blob(name)
        with self._observed("get"), translated(self.location, name):
            data = blob.download_as_bytes(
                raw_download=True, checksum=None, retry=None, timeout=self._timeout
            )
        if blob.generation is None or blob.crc32c is None:
            raise StoreError(f"{self.location}: {name} came without its generation or crc32c")
        crc32c = crc32c_of(data)
        stat = ObjectStat(name, len(data), crc32c, str(blob.generation))
        return StoredObject(data, stat), crc32c == _decoded(blob.crc32c)

    def _read(
        self, operation: Operation, blob: storage.Blob, name: str, *, start: int, size: int
    ) -> bytes:
        with self._observed(operation):
            try:
                with translated(self.location, name):
                    data: bytes = blob.download_as_bytes(
                        start=start,
                        end=start + size - 1,
                        raw_download=True,
                        checksum=None,
                        retry=None,
                        timeout=self._timeout,
                    )
            except StoreError as error:
                if getattr(error.__cause__, "code", None) == _RANGE_NOT_SATISFIABLE:
                    return b""  # it begins behind the object's end
                raise
            return data

    def _stat(self, name: str) -> ObjectStat:
        blob = self._blob(name)
        with self._observed("stat"), translated(self.location, name):
            blob.reload(retry=None, timeout=self._timeout)
        return _stat_of(blob, name)

    def _list(self, prefix: str) -> dict[str, float]:
        with (
            self._observed("list"),
            translated(self.location, prefix, not_found_is_bucket=True),
        ):
            blobs = self._client.list_blobs(
                self._location.bucket,
                prefix=self._root + prefix,
                fields="items(name,updated),nextPageToken",
                retry=None,
                timeout=self._timeout,
            )
            return {
                blob.name.removeprefix(self._root): blob.updated.timestamp()
                if blob.updated
                else 0.0
                for blob in blobs
            }

    def _delete(self, name: str, generation: str) -> None:
        try:
            with self._observed("delete"), translated(self.location, name):
                self._blob(name).delete(
                    if_generation_match=int(generation), retry=None, timeout=self._timeout
                )
        except GenerationMismatchError:
            self.stat(name)  # ObjectNotFoundError where it is gone altogether
            raise

    def _download(
        self, name: str, file: BinaryIO, on_piece: Callable[[], None]
    ) -> tuple[ObjectStat, Summary]:
        stat = self.stat(name)
        summing = Summing()
        for piece in self._ranges(stat):
            file.write(piece)
            summing.add(piece)
            on_piece()
        return stat, summing.summary()

    def _ranges(self, stat: ObjectStat) -> Iterator[bytes]:
        blob = self._blob(stat.name, generation=int(stat.generation))
        for start in range(0, stat.size, _DOWNLOAD_RANGE_BYTES):
            size = min(_DOWNLOAD_RANGE_BYTES, stat.size - start)
            yield self._retried(lambda: self._whole_range(blob, stat.name, start=start, size=size))  # noqa: B023  # called at once

    def _whole_range(self, blob: storage.Blob, name: str, *, start: int, size: int) -> bytes:
        piece = self._read("download", blob, name, start=start, size=size)
        if len(piece) != size:
            raise StoreUnavailableError(
                f"{self.location}: {name}: {len(piece)} bytes of {size} arrived"
            )
        return piece


class _Source:
    """A file that is summed, and says so, as Google's client reads it; what that needs of one."""

    def __init__(self, file: BinaryIO, on_bytes: Callable[[int], None]) -> None:
        self._file = file
        self._on_bytes = on_bytes
        self._summing = Summing()
        self._end = 0  # of what is summed; a session that resumes reads some bytes again

    def read(self, size: int = -1) -> bytes:
        start = self._file.tell()
        data = self._file.read(size)
        if data:
            self._on_bytes(len(data))
        new = data[self._end - start :] if start < self._end else data
        self._summing.add(new)
        self._end += len(new)
        return data

    def tell(self) -> int:
        return self._file.tell()

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def summary(self) -> Summary:
        return self._summing.summary()


def _compared(stat: ObjectStat, sent: Summary) -> ObjectStat:
    if (stat.size, stat.crc32c) != (sent.size, sent.crc32c):
        raise CheckpointDamagedError(
            f"{stat.name} arrived in the store with {stat.size} bytes and crc32c "
            f"{stat.crc32c:08x}; {sent.size} bytes and {sent.crc32c:08x} were sent"
        )
    return stat


def _stat_of(blob: storage.Blob, name: str) -> ObjectStat:
    return ObjectStat(name, blob.size, _decoded(blob.crc32c), str(blob.generation))


def _decoded(crc32c: str) -> int:
    return int.from_bytes(base64.b64decode(crc32c), "big")
