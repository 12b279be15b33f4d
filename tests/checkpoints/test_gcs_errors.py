import pytest
import requests
import urllib3
from google.api_core import exceptions as api
from google.auth import exceptions as auth

from tandem.checkpoints.gcs_errors import translated
from tandem.errors import (
    BucketMissingError,
    ConfigError,
    GenerationMismatchError,
    ObjectNotFoundError,
    StoreError,
    StoreRefusedError,
    StoreUnavailableError,
)

RATE_LIMIT = api.Forbidden("slow down", errors=[{"reason": "rateLimitExceeded"}])


def _translation_of(error, **kwargs):
    with pytest.raises(Exception) as caught, translated("gs://my-bucket/run", "x", **kwargs):  # noqa: PT011
        raise error
    return caught.value


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (api.ServiceUnavailable("busy"), StoreUnavailableError),
        (api.TooManyRequests("slow down"), StoreUnavailableError),
        (api.InternalServerError("oops"), StoreUnavailableError),
        (api.from_http_status(408, "late"), StoreUnavailableError),
        (api.from_http_status(410, "the session is gone"), StoreUnavailableError),
        (RATE_LIMIT, StoreUnavailableError),
        (api.BadRequest("Provided CRC32C doesn't match calculated"), StoreUnavailableError),
        (api.RetryError("deadline", None), StoreUnavailableError),
        (requests.ConnectionError("reset"), StoreUnavailableError),
        (requests.ReadTimeout("silent"), StoreUnavailableError),
        (urllib3.exceptions.ProtocolError("cut off"), StoreUnavailableError),
        (ConnectionResetError("reset"), StoreUnavailableError),
        (auth.TransportError("no metadata server"), StoreUnavailableError),
        (auth.RefreshError("later", retryable=True), StoreUnavailableError),
        (auth.RefreshError("revoked"), StoreRefusedError),
        (auth.DefaultCredentialsError("none"), StoreRefusedError),
        (api.Forbidden("no storage.objects.create"), StoreRefusedError),
        (api.Unauthorized("who?"), StoreRefusedError),
        (api.NotFound("The specified bucket does not exist."), BucketMissingError),
        (api.NotFound("No such object: my-bucket/run/x"), ObjectNotFoundError),
        (api.PreconditionFailed("conditionNotMet"), GenerationMismatchError),
        (api.BadRequest("what?"), StoreError),
        (requests.exceptions.MissingSchema("no http"), StoreError),
    ],
    ids=lambda value: str(value) if isinstance(value, Exception) else value.__name__,
)
def test_each_failure_says_whether_asking_again_may_help(error, expected):
    found = _translation_of(error)
    assert type(found) is expected
    assert found.__cause__ is error


def test_where_no_object_is_looked_for_it_is_the_bucket_that_is_missing():
    found = _translation_of(api.NotFound("Not Found"), not_found_is_bucket=True)
    assert isinstance(found, ConfigError)
    assert "there is no bucket 'my-bucket'" in str(found)
    assert "gcloud storage buckets create gs://my-bucket" in str(found)


def test_a_refused_access_names_the_object_and_the_role_that_is_needed():
    message = str(_translation_of(api.Forbidden("denied to tandem@project")))
    assert message.startswith("gs://my-bucket/run: x: access refused")
    assert "denied to tandem@project" in message
    assert "roles/storage.objectUser" in message


def test_a_long_message_is_cut():
    assert len(str(_translation_of(api.BadRequest("x" * 5000)))) < 400


def test_other_exceptions_pass_as_they_are():
    error = KeyError("a mistake")
    assert _translation_of(error) is error
    assert isinstance(_translation_of(FileNotFoundError("a local file")), FileNotFoundError)
