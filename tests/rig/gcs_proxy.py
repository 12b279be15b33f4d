"""A way for TensorFlow's own `gs://` to our server: it can't be told another endpoint.

TensorFlow compiles Google's host names in, but goes through `https_proxy` and trusts what
`CURL_CA_BUNDLE` names. So this is a CONNECT proxy on loopback that answers for Google's storage
hosts, with a certificate of an authority of its own.
"""

from __future__ import annotations

import contextlib
import datetime
import http.client
import socketserver
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

HOSTS = ("www.googleapis.com", "storage.googleapis.com")
_NOT_FORWARDED = {"host", "transfer-encoding", "content-length", "accept-encoding"}
_NOT_RETURNED = {"transfer-encoding", "content-length", "connection", "date", "server"}


@contextlib.contextmanager
def tensorflow_environment(server_url: str, folder: Path) -> Iterator[dict[str, str]]:
    """Environment variables with which TensorFlow's `gs://` is the server.

    Args:
        server_url: of `tests.rig.gcs`.
        folder: for certificates.
    """
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority = _write_certificates(folder)
    tls.load_cert_chain(folder / "server.pem")
    with _Proxy(urlsplit(server_url).netloc, tls) as proxy:
        thread = threading.Thread(target=proxy.serve_forever)
        thread.start()
        try:
            yield {
                "https_proxy": f"http://127.0.0.1:{proxy.server_address[1]}",
                "no_proxy": "localhost,127.0.0.1",
                "CURL_CA_BUNDLE": str(authority),
                "NO_GCE_CHECK": "true",
                "GOOGLE_AUTH_TOKEN_FOR_TESTING": "token",
            }
        finally:
            proxy.shutdown()
            thread.join()


class _Proxy(socketserver.ThreadingMixIn, socketserver.TCPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, emulator: str, tls: ssl.SSLContext) -> None:
        super().__init__(("127.0.0.1", 0), _Tunnel)
        self.emulator = emulator
        self.tls = tls


class _Tunnel(BaseHTTPRequestHandler):
    server: _Proxy

    def do_CONNECT(self) -> None:
        if self.path.partition(":")[0] not in HOSTS:
            return self.send_error(502, "only Google's storage is here")
        self.send_response_only(200)
        self.end_headers()
        self.wfile.flush()
        self.close_connection = True
        with (
            contextlib.suppress(OSError),  # the client goes without a word
            self.server.tls.wrap_socket(self.connection, server_side=True) as stream,
        ):
            _Forward(stream, self.client_address, self.server)

    def log_message(self, *args: object) -> None:
        pass


class _Forward(BaseHTTPRequestHandler):
    """Serves the requests inside one tunnel."""

    protocol_version = "HTTP/1.1"
    server: _Proxy

    def forward(self) -> None:
        headers = {k: v for k, v in self.headers.items() if k.lower() not in _NOT_FORWARDED}
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        connection = http.client.HTTPConnection(self.server.emulator)
        with contextlib.closing(connection):
            connection.request(self.command, self.path, body=body, headers=headers)
            response = connection.getresponse()
            data = response.read()
        self.send_response_only(response.status)
        for key, value in response.getheaders():
            if key.lower() not in _NOT_RETURNED:
                self.send_header(key, value)
        length = response.getheader("Content-Length") if self.command == "HEAD" else None
        self.send_header("Content-Length", length or str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_PUT = do_POST = do_DELETE = do_PATCH = do_HEAD = forward  # noqa: N815

    def log_message(self, *args: object) -> None:
        pass


def _write_certificates(folder: Path) -> Path:
    """Writes `server.pem` (key and certificate) and returns the authority's certificate."""
    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Tandem's tests")])
    authority = (
        _builder(authority_name, authority_name, authority_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOSTS[0])])
    names = x509.SubjectAlternativeName([x509.DNSName(host) for host in HOSTS])
    certificate = (
        _builder(name, authority_name, key.public_key())
        .add_extension(names, critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "server.pem").write_bytes(private + certificate.public_bytes(pem))
    path = folder / "authority.pem"
    path.write_bytes(authority.public_bytes(pem))
    return path


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.timezone.utc)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=2))
    )
