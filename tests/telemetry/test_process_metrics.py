from prometheus_client import CollectorRegistry

from tandem.telemetry.process_metrics import ProcessMetrics, StoreMetrics


def test_the_software_and_damaged_checkpoints_are_shown():
    registry = CollectorRegistry()
    metrics = ProcessMetrics(registry)
    assert registry.get_sample_value("tandem_ckpt_verify_failures_total") == 0
    metrics.show_software(version="1.2", image="i@sha256:ab")
    metrics.count_verify_failure()
    labels = {"version": "1.2", "image": "i@sha256:ab"}
    assert registry.get_sample_value("tandem_build_info", labels) == 1
    assert registry.get_sample_value("tandem_ckpt_verify_failures_total") == 1


def test_requests_to_a_bucket_are_counted_by_outcome_and_timed_where_somebody_did():
    registry = CollectorRegistry()
    metrics = StoreMetrics(registry)
    count, timed = "tandem_gcs_requests_total", "tandem_gcs_seconds_count"
    assert registry.get_sample_value(count, {"op": "delete", "outcome": "refused"}) == 0
    metrics("upload", "error", None)
    metrics("upload", "ok", 2.0)
    assert registry.get_sample_value(count, {"op": "upload", "outcome": "error"}) == 1
    assert registry.get_sample_value(count, {"op": "upload", "outcome": "ok"}) == 1
    assert registry.get_sample_value(timed, {"op": "upload"}) == 1
    assert registry.get_sample_value(timed, {"op": "get"}) == 0
