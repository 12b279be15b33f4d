"""From the exceptions of Google's client, and of what it stands on, to those of Tandem.

What says nothing about the object or the user's settings is StoreUnavailableError: asking again may
help, and a put may have taken effect. Missing buckets, credentials and permissions are kinds of
ConfigError, so that no reader takes them for damage.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import requests
import urllib3
from google.api_core import exceptions as api
from google.auth import exceptions as auth
from google.cloud.storage.exceptions import InvalidResponse

from tandem.errors import (
    BucketMissingError,
    GenerationMismatchError,
    ObjectNotFoundError,
    StoreError,
    StoreRefusedError,
    StoreUnavailableError,
    TandemError,
)

_PASSING_TYPES = (
    api.RetryError,
    auth.TransportError,
    requests.ConnectionError,
    requests.Timeout,
    requests.exceptions.ChunkedEncodingError,
    requests.exceptions.ContentDecodingError,
    urllib3.exceptions.HTTPError,
    ConnectionError,
    TimeoutError,
)
_GOOGLE_TYPES = (
    api.GoogleAPIError,
    auth.GoogleAuthError,
    requests.RequestException,
    *_PASSING_TYPES,
)

# 410: an upload session that has expired. 409: another request is changing the object.
_PASSING_CODES = frozenset({408, 409, 410, 429, 500, 502, 503, 504})
_NO_SESSION_CODES = frozenset({404, 410})
_RATE_LIMITS = frozenset({"rateLimitExceeded", "userRateLimitExceeded"})  # sent with code 403

_MAX_MESSAGE_CHARACTERS = 300


@contextlib.contextmanager
def translated(location: str, name: str, *, not_found_is_bucket: bool = False) -> Iterator[None]:
    """Turns what Google's client raises into the store's errors.

    Args:
        location: the store, for messages.
        name: the object or prefix, for messages.
        not_found_is_bucket: for calls that find no fault with a missing object.
    """
    try:
        yield
    except _GOOGLE_TYPES as error:
        raise _translation(error, location, name, not_found_is_bucket) from error


def is_passing(error: BaseException) -> bool:
    """Whether asking again may help."""
    if isinstance(error, api.GoogleAPICallError):
        return error.code in _PASSING_CODES or _is_rate_limit(error) or _was_garbled(error)
    if isinstance(error, InvalidResponse):  # inside an upload session
        return error.response.status_code in _PASSING_CODES
    if isinstance(error, auth.RefreshError):
        return bool(error.retryable)
    return isinstance(error, _PASSING_TYPES)


def is_passing_in_session(error: BaseException) -> bool:
    """Whether the same request of an upload session may help, and not only another session."""
    return is_passing(error) and not _is_lost_session(error)


def credentials_error(location: str, error: Exception) -> StoreRefusedError:
    """That nothing here says who we are."""
    return StoreRefusedError(
        f"{location}: no Google Cloud credentials to use ({_short(error)}); expected those of the "
        "pod's service account (GKE: Workload Identity), a key file named by "
        "GOOGLE_APPLICATION_CREDENTIALS, or the user's own from 'gcloud auth application-default "
        "login'"
    )


def _translation(
    error: Exception, location: str, name: str, not_found_is_bucket: bool
) -> TandemError:
    what = f"{location}: {name}" if name else location
    if is_passing(error) or _is_lost_session(error):
        return StoreUnavailableError(f"{what}: {_short(error)}")
    if isinstance(error, auth.GoogleAuthError):
        return credentials_error(location, error)
    if isinstance(error, api.PreconditionFailed):
        return GenerationMismatchError(f"{what} is of another generation")
    if isinstance(error, api.NotFound):
        if not_found_is_bucket or "bucket does not exist" in str(error):
            return _missing_bucket(location)
        return ObjectNotFoundError(f"there is no {name}")
    if isinstance(error, (api.Forbidden, api.Unauthorized)):
        return _refused(what, error)
    return StoreError(f"{what}: {_short(error)}")


def _missing_bucket(location: str) -> BucketMissingError:
    bucket = location.removeprefix("gs://").partition("/")[0]
    return BucketMissingError(
        f"{location}: there is no bucket {bucket!r}; expected one that exists: check the name, or "
        f"make it with 'gcloud storage buckets create gs://{bucket}'"
    )


def _refused(what: str, error: api.GoogleAPICallError) -> StoreRefusedError:
    return StoreRefusedError(
        f"{what}: access refused ({_short(error)}); expected the role roles/storage.objectUser on "
        "the bucket for the account that this process runs as: grant it with 'gcloud storage "
        "buckets add-iam-policy-binding'"
    )


def _is_lost_session(error: BaseException) -> bool:
    """Whether the store doesn't know an upload session (any more): only sessions use PUT."""
    response = getattr(error, "response", None)
    if not isinstance(response, requests.Response) or response.request is None:
        return False
    return response.request.method == "PUT" and response.status_code in _NO_SESSION_CODES


def _is_rate_limit(error: api.GoogleAPICallError) -> bool:
    return any(entry.get("reason") in _RATE_LIMITS for entry in error.errors)


def _was_garbled(error: api.GoogleAPICallError) -> bool:
    """Whether the store refused an upload for another checksum than the one sent along."""
    return isinstance(error, api.BadRequest) and "crc32c" in str(error).lower()


def _short(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    if len(text) > _MAX_MESSAGE_CHARACTERS:
        text = text[:_MAX_MESSAGE_CHARACTERS] + "..."
    return text
