"""Where in Google Cloud Storage a run is: `gs://BUCKET/PREFIX`."""

from __future__ import annotations

import re
from typing import NamedTuple

from tandem.errors import ConfigError

_SCHEME = "gs://"
_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]")
_CONTROL_CHARACTER = re.compile(r"[\x00-\x1f\x7f-\x9f\ufffe\uffff]")

# Object names end at 1024 bytes; those of a run need up to 300 below its prefix.
_MAX_PREFIX_BYTES = 700


class BucketLocation(NamedTuple):
    """A bucket and the prefix in it (without a slash at its end; empty for the whole bucket)."""

    bucket: str
    prefix: str

    def __str__(self) -> str:
        return f"{_SCHEME}{self.bucket}" + (f"/{self.prefix}" if self.prefix else "")


def is_remote(location: str) -> bool:
    """Whether a location is meant as a URL, rightly written or not, and not as a local path."""
    return "://" in location or location.lower().startswith(("gs:", "gcs:"))


def parse_bucket_location(location: str) -> BucketLocation:
    """Reads `gs://BUCKET/PREFIX`; the prefix may hold any character that object names may.

    Raises:
        ConfigError: it is something else.
    """
    if not location.startswith(_SCHEME):
        raise _refusal(location, "it is neither a local path nor does it begin with gs://")
    bucket, _, prefix = location.removeprefix(_SCHEME).partition("/")
    if not _BUCKET.fullmatch(bucket):
        raise _refusal(location, f"{bucket!r} is no bucket's name")
    prefix = prefix.removesuffix("/")
    if not prefix:
        raise _refusal(
            location, f"it is a whole bucket; name a folder in it, as {_SCHEME}{bucket}/runs/first"
        )
    parts = prefix.split("/")
    if any(part in ("", ".", "..") for part in parts):
        raise _refusal(location, "a part between two slashes is empty, '.' or '..'")
    if _CONTROL_CHARACTER.search(prefix):
        raise _refusal(location, "it has a control character")
    if len(prefix.encode("utf-8", "surrogateescape")) > _MAX_PREFIX_BYTES:
        raise _refusal(location, f"its prefix is longer than {_MAX_PREFIX_BYTES} bytes")
    return BucketLocation(bucket, prefix)


def _refusal(location: str, why: str) -> ConfigError:
    return ConfigError(
        f"the run folder {location!r} can't be used: {why}; expected a local path, or "
        "gs://BUCKET/PREFIX for Google Cloud Storage"
    )
