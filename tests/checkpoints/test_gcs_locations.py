import pytest

from tandem.checkpoints.gcs_locations import BucketLocation, is_remote, parse_bucket_location
from tandem.errors import ConfigError


@pytest.mark.parametrize(
    ("location", "bucket", "prefix"),
    [
        ("gs://my-bucket/runs/a", "my-bucket", "runs/a"),
        ("gs://my-bucket/runs/a/", "my-bucket", "runs/a"),
        ("gs://my.bucket_1/ä b#c?d%20/e", "my.bucket_1", "ä b#c?d%20/e"),
    ],
)
def test_a_bucket_and_its_prefix_are_read(location, bucket, prefix):
    assert parse_bucket_location(location) == (bucket, prefix)


def test_a_location_is_written_as_users_write_it():
    assert str(parse_bucket_location("gs://my-bucket/runs/")) == "gs://my-bucket/runs"
    assert str(BucketLocation("my-bucket", "")) == "gs://my-bucket"


@pytest.mark.parametrize("location", ["gs://my-bucket", "gs://my-bucket/"])
def test_a_whole_bucket_is_refused_with_a_folder_in_it(location):
    with pytest.raises(
        ConfigError, match="a whole bucket; name a folder in it, as gs://my-bucket/r"
    ):
        parse_bucket_location(location)


@pytest.mark.parametrize(
    "location",
    [
        "gs://",
        "gs:///run",
        "gs:/my-bucket/run",  # what pathlib makes of a URL
        "gs:my-bucket/run",
        "gcs://my-bucket/run",
        "GS://my-bucket/run",
        "s3://my-bucket/run",
        "https://storage.googleapis.com/my-bucket/run",
        "gs://My-Bucket/run",
        "gs://ab/run",
        "gs://my bucket/run",
        "gs://my-bucket//run",
        "gs://my-bucket/run//",
        "gs://my-bucket/./run",
        "gs://my-bucket/../run",
        "gs://my-bucket/run\n",
        "gs://my-bucket/" + "x" * 701,
    ],
)
def test_a_bad_location_is_refused_with_itself_and_what_was_expected(location):
    assert is_remote(location)
    with pytest.raises(ConfigError) as caught:
        parse_bucket_location(location)
    assert repr(location) in str(caught.value)
    assert "gs://BUCKET/PREFIX" in str(caught.value)


@pytest.mark.parametrize("location", ["runs/a", "/runs/a", "./gs", "gs", "C:/runs"])
def test_a_local_path_is_local(location):
    assert not is_remote(location)
