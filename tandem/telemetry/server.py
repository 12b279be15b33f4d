"""Answers ``/metrics`` for Prometheus and ``/healthz`` for probes, from a thread of its own."""

from __future__ import annotations

import errno
import json
import logging
import socket
import socketserver
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple, cast

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from tandem.errors import ConfigError
from tandem.telemetry.health import Health

_CLIENT_TIMEOUT_SECONDS = 10.0
_STOP_POLL_SECONDS = 0.1

_logger = logging.getLogger(__name__)


class _Answer(NamedTuple):
    status: HTTPStatus
    content_type: str
    body: bytes


class MetricsServer:
    """A server that is up; `serve` makes it."""

    def __init__(self, server: _Server) -> None:
        self._server = server
        self._thread = threading.Thread(
            target=server.serve_forever,
            kwargs={"poll_interval": _STOP_POLL_SECONDS},
            name="metrics-server",
            daemon=True,
        )
        self._thread.start()

    @property
    def port(self) -> int:
        """The port it listens on, also when any free one was asked for."""
        return self._server.server_port

    def close(self) -> None:
        """Stops listening; answers under way are not waited for."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def serve(registry: CollectorRegistry, health: Health, *, host: str, port: int) -> MetricsServer:
    """Starts the server.

    Args:
        registry: what ``/metrics`` shows.
        health: what ``/healthz`` shows: 200 when ok, else 503, and the report as JSON.
        host: ``127.0.0.1`` for this machine only, ``0.0.0.0`` for all addresses.
        port: 0 takes any free one.

    Raises:
        ConfigError: the address can't be listened on.
    """
    try:
        return MetricsServer(_Server(registry, health, host, port))
    except (OSError, OverflowError) as error:
        raise ConfigError(f"metrics server: {_explain(error, host, port)}") from error


class _Server(ThreadingHTTPServer):
    def __init__(self, registry: CollectorRegistry, health: Health, host: str, port: int) -> None:
        self.registry = registry
        self.health = health
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), _Handler)

    def server_bind(self) -> None:
        """Leaves out the base class's look-up of the host's name, which may wait for DNS."""
        socketserver.TCPServer.server_bind(self)
        self.server_name = str(self.server_address[0])
        self.server_port = int(self.server_address[1])


class _Handler(BaseHTTPRequestHandler):
    """Answers one request, without a word to stderr."""

    timeout = _CLIENT_TIMEOUT_SECONDS
    server_version = "tandem"
    sys_version = ""

    def do_GET(self) -> None:
        self._send(with_body=True)

    def do_HEAD(self) -> None:
        self._send(with_body=False)

    def _send(self, *, with_body: bool) -> None:
        server = cast("_Server", self.server)
        status, content_type, body = _answer(self.path, server.registry, server.health)
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        _logger.debug(format, *args)


def _answer(path: str, registry: CollectorRegistry, health: Health) -> _Answer:
    route = path.partition("?")[0]
    if route == "/metrics":
        return _Answer(HTTPStatus.OK, CONTENT_TYPE_LATEST, generate_latest(registry))
    if route == "/healthz":
        report = health.report()
        status = HTTPStatus.OK if report.status == "ok" else HTTPStatus.SERVICE_UNAVAILABLE
        facts = {
            **report._asdict(),
            "seconds_since_progress": round(report.seconds_since_progress, 3),
        }
        return _Answer(status, "application/json", json.dumps(facts).encode() + b"\n")
    body = b"here are /metrics and /healthz\n"
    return _Answer(HTTPStatus.NOT_FOUND, "text/plain; charset=utf-8", body)


def _explain(error: OSError | OverflowError, host: str, port: int) -> str:
    if isinstance(error, OverflowError):
        return f"expected a port from 0 to 65535, found {port}"
    if error.errno == errno.EADDRINUSE:
        return f"port {port} on {host} is in use; choose another, or 0 for any free one"
    if error.errno == errno.EACCES:
        return f"port {port} on {host} is not allowed to this user; choose one above 1023"
    return f"can't listen on {host!r}, port {port}: {error.strerror or error}"
