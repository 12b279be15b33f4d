import pytest

from tandem.checkpoints.opening import open_store
from tandem.errors import ConfigError


def test_opening_writes_nothing(tmp_path):
    store = open_store(str(tmp_path / "run"))
    assert store.location == str(tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("location", ["gs://bucket/run", "s3://bucket/run"])
def test_a_bucket_is_refused_for_now(location):
    with pytest.raises(ConfigError, match=location):
        open_store(location)


def test_a_file_is_no_run_folder(tmp_path):
    path = tmp_path / "pipeline.config"
    path.write_text("")
    with pytest.raises(ConfigError, match="is a file"):
        open_store(str(path))


def test_an_empty_location_is_refused():
    with pytest.raises(ConfigError, match="empty"):
        open_store(" ")
