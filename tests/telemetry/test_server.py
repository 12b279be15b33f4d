import json
import threading
import urllib.error
import urllib.request

import pytest
from prometheus_client import CollectorRegistry, Gauge

from tandem.errors import ConfigError
from tandem.telemetry.health import Health
from tandem.telemetry.server import serve


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def health(clock):
    return Health(patience_seconds=10, phase="training", monotonic=clock)


@pytest.fixture
def registry():
    registry = CollectorRegistry()
    Gauge("tandem_answer", "The answer.", registry=registry).set(42)
    return registry


@pytest.fixture
def server(registry, health):
    server = serve(registry, health, host="127.0.0.1", port=0)
    yield server
    server.close()


def get(server, path, method="GET"):
    url = f"http://127.0.0.1:{server.port}{path}"
    request = urllib.request.Request(url, method=method)
    try:
        with urllib.request.urlopen(request, timeout=5) as response:
            return response.status, response.headers["Content-Type"], response.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers["Content-Type"], error.read()


def test_metrics_are_in_prometheus_text(server):
    status, content_type, body = get(server, "/metrics")
    assert status == 200
    assert content_type.startswith("text/plain; version=")
    assert b"tandem_answer 42.0\n" in body


def test_a_healthy_process_answers_200_with_its_facts(server, health):
    health.beat(step=7)
    status, content_type, body = get(server, "/healthz")
    assert (status, content_type) == (200, "application/json")
    assert json.loads(body) == {
        "status": "ok",
        "phase": "training",
        "step": 7,
        "seconds_since_progress": 0.0,
    }


def test_a_process_whose_loop_hangs_answers_503_although_the_server_lives(server, clock):
    clock.now = 11.0
    status, _, body = get(server, "/healthz?verbose=1")
    assert status == 503
    assert json.loads(body)["status"] == "stalled"
    assert json.loads(body)["seconds_since_progress"] == 11.0


def test_head_has_no_body(server):
    assert get(server, "/metrics", method="HEAD") == (
        200,
        get(server, "/metrics")[1],
        b"",
    )


def test_other_paths_are_not_found_and_say_what_is_there(server):
    status, _, body = get(server, "/")
    assert (status, body) == (404, b"here are /metrics and /healthz\n")


def test_requests_leave_no_trace_on_stderr(server, capfd):
    get(server, "/metrics")
    get(server, "/nope")
    assert capfd.readouterr() == ("", "")


def test_a_port_in_use_is_a_config_error(server, registry, health):
    with pytest.raises(ConfigError, match=rf"port {server.port} on 127\.0\.0\.1 is in use; choose"):
        serve(registry, health, host="127.0.0.1", port=server.port)


@pytest.mark.parametrize(
    ("host", "port", "expected"),
    [
        ("127.0.0.1", 70000, "expected a port from 0 to 65535, found 70000"),
        ("no such host", 0, "can't listen on 'no such host', port 0"),
    ],
)
def test_an_address_that_cannot_be_listened_on_is_a_config_error(
    registry, health, host, port, expected
):
    with pytest.raises(ConfigError, match=expected):
        serve(registry, health, host=host, port=port)


def test_closing_frees_the_port_and_ends_the_thread(registry, health):
    threads = threading.active_count()
    server = serve(registry, health, host="0.0.0.0", port=0)
    server.close()
    again = serve(registry, health, host="0.0.0.0", port=server.port)
    again.close()
    assert threading.active_count() == threads
