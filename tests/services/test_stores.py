from prometheus_client import CollectorRegistry

from services.stores import Stores
from tests.rig.gcs import BUCKET, unique

COUNT = "tandem_gcs_requests_total"


def test_a_local_run_has_no_metrics_of_a_bucket_but_is_measured(tmp_path):
    registry = CollectorRegistry()
    stores = Stores(registry, str(tmp_path / "run"), None, credentials_seconds=0.0)
    stores.open(str(tmp_path / "run")).list("")
    assert list(registry.collect()) == []
    assert stores.requests.view().num_requests == 1


def test_only_requests_to_a_bucket_are_in_its_metrics(tmp_path, gcs_server, monkeypatch):
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", gcs_server.url)
    registry = CollectorRegistry()
    bucket = f"gs://{BUCKET}/{unique('stores')}"
    stores = Stores(registry, str(tmp_path / "run"), bucket, credentials_seconds=0.0)
    stores.open(str(tmp_path / "run")).list("")
    stores.open(bucket).list("")
    assert registry.get_sample_value(COUNT, {"op": "list", "outcome": "ok"}) == 1
    assert stores.requests.view().num_requests == 2
