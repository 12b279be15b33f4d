"""A proxy on loopback that makes fake-gcs-server behave more like Google Cloud Storage.

It adds preconditions on every call, resumable uploads included; upload sessions that take a chunk
again and that answer again once they are finished; and faults on request (`tests.rig.gcs_faults`):

    PUT /_faults        a JSON list, replacing the one before
    GET /_log           the request lines that a fault was applied to
    GET /_log?since=N   all request lines, faulty or not, from number N on

"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import struct
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, quote, urlsplit

from tests.rig.gcs_faults import Fault, Faults
from tests.rig.gcs_objects import Answer, Chunk, Target, chunk_of, query_of, target_of
from tests.rig.gcs_sessions import Session

_PIECE_BYTES = 1 << 20
_NOT_FORWARDED = {"host", "connection", "content-length", "transfer-encoding", "accept-encoding"}
_NOT_RETURNED = {"content-length", "transfer-encoding", "connection", "date", "server"}


class Shim(ThreadingHTTPServer):
    """The proxy; `serve_forever` runs it."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, port: int, upstream: str, *, host: str = "127.0.0.1") -> None:
        super().__init__((host, port), _Handler)
        self.upstream = upstream
        self.faults = Faults()
        self.sessions: dict[str, Session] = {}
        self._locks: defaultdict[tuple[str, str], threading.RLock] = defaultdict(threading.RLock)

    @property
    def address(self) -> str:
        return f"{self.server_address[0]}:{self.server_port}"

    def lock(self, target: Target | None) -> contextlib.AbstractContextManager[object]:
        """Makes looking at an object's generation and writing the object one step."""
        if target is None:
            return contextlib.nullcontext()
        return self._locks[target.bucket, target.name]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 300
    server: Shim

    def setup(self) -> None:
        super().setup()
        self._upstream = http.client.HTTPConnection(self.server.upstream, timeout=300)

    def finish(self) -> None:
        self._upstream.close()
        with contextlib.suppress(OSError):
            super().finish()

    def handle(self) -> None:
        with contextlib.suppress(ConnectionError, TimeoutError):  # the client has gone
            super().handle()

    def handle_any(self) -> None:
        if self.path.startswith("/_"):
            return self._control()
        if session := self.server.sessions.get(query_of(self.path).get("upload_id", "")):
            return self._handle_chunk(session)
        body = b"".join(self._pieces(Fault("")))
        target = target_of(self.path, self.headers.get("Content-Type", ""), body)
        fault = self._take_fault(target)
        if fault.throttle:
            fault.throttle.take(len(body))
        if fault.after_bytes is not None and self.command not in ("GET", "HEAD"):
            return self._reset()
        self._carry_out(fault, lambda: self._answer(target, body))

    def _handle_chunk(self, session: Session) -> None:
        fault = self._take_fault(session.target)
        if fault.refuses:
            for _ in self._pieces(fault):
                pass
        else:
            self._take_chunk(session, fault)
        if fault.after_bytes is not None:
            return self._reset()
        self._carry_out(fault, lambda: self._answer_chunk(session))

    def _take_fault(self, target: Target | None) -> Fault:
        name = target.name if target else ""
        return self.server.faults.take(f"{self.command} {self.path} {name}")

    def _carry_out(self, fault: Fault, answer: Callable[[], Answer]) -> None:
        time.sleep(fault.delay)
        if fault.refuses:
            return self._fail(fault)
        found = answer()
        if fault.commit:
            return self._fail(fault)
        self._reply(found, fault)

    do_GET = do_PUT = do_POST = do_DELETE = do_PATCH = do_HEAD = handle_any  # noqa: N815

    def _answer(self, target: Target | None, body: bytes) -> Answer:
        is_read = self.command in ("GET", "HEAD")
        if target is None or (is_read and not target.conditions):
            return self._forward(body)
        with self.server.lock(target):
            if refusal := self._refusal(target):
                return refusal
            answer = self._forward(body)
        if query_of(self.path).get("uploadType") == "resumable":
            self._remember(target, answer)
        return answer

    def _remember(self, target: Target, answer: Answer) -> None:
        location = {key.lower(): value for key, value in answer.headers}.get("location", "")
        for upload_id in parse_qs(urlsplit(location).query).get("upload_id", []):
            self.server.sessions[upload_id] = Session(
                target, self.server.upstream, self.headers.get("X-Upload-Content-Type", "")
            )

    def _take_chunk(self, session: Session, fault: Fault) -> None:
        start = self._chunk().start
        with session.lock:
            for piece in self._pieces(fault):
                if fault.flip_sent_bit:
                    piece = bytes([piece[0] ^ 1]) + piece[1:]
                if session.answer is None and start <= session.num_arrived:
                    session.take(start, piece)
                start += len(piece)

    def _answer_chunk(self, session: Session) -> Answer:
        """To a chunk of a resumable upload, or to the question how much has arrived."""
        chunk = self._chunk()
        with session.lock:
            if session.answer is not None:
                return self._with_our_address(session.answer)
            if chunk.start > session.num_arrived:
                return _error(400, "bytes are missing before this chunk")
            if not chunk.is_last:
                return _arrived(session.num_arrived)
            with self.server.lock(session.target):
                answer = session.finish(self._refusal(session.target))
                return self._with_our_address(answer)

    def _chunk(self) -> Chunk:
        return chunk_of(self.headers.get("Content-Range"))

    def _refusal(self, target: Target) -> Answer | None:
        if not target.conditions:
            return None
        found = self._generations(target)
        conditions = target.conditions
        for key, generation in found.items():
            if conditions.get(f"if{key}Match", generation) != generation:
                return _error(412, "conditionNotMet")
            if conditions.get(f"if{key}NotMatch", -1) == generation:
                is_read = self.command in ("GET", "HEAD")
                return Answer(304, [], b"") if is_read else _error(412, "conditionNotMet")
        return None

    def _generations(self, target: Target) -> dict[str, int]:
        path = f"/storage/v1/b/{target.bucket}/o/{quote(target.name, safe='')}"
        self._upstream.request("GET", path)
        response = self._upstream.getresponse()
        body = response.read()
        if response.status == 404:
            return {"Generation": 0, "Metageneration": 0}
        found = json.loads(body)
        return {
            "Generation": int(found["generation"]),
            "Metageneration": int(found.get("metageneration", 1)),
        }

    def _forward(self, body: bytes) -> Answer:
        headers = {k: v for k, v in self.headers.items() if k.lower() not in _NOT_FORWARDED}
        self._upstream.request(self.command, self.path, body=body, headers=headers)
        response = self._upstream.getresponse()
        answer = Answer(response.status, response.getheaders(), response.read())
        if answer.status == 416:
            self._upstream.close()  # fake-gcs-server does, without saying so
        return self._with_our_address(answer)

    def _with_our_address(self, answer: Answer) -> Answer:
        """Lets links lead here: to upload sessions, and to an object's bytes."""
        old, new = self.server.upstream, self.server.address
        headers = [(key, value.replace(old, new)) for key, value in answer.headers]
        body = answer.body
        if ("Content-Type", "application/json") in answer.headers:
            body = body.replace(old.encode(), new.encode())
        return Answer(answer.status, headers, body)

    def _pieces(self, fault: Fault) -> Iterator[bytes]:
        """The request's body, or what a fault lets through of it."""
        if self.headers.get("Transfer-Encoding") == "chunked":
            yield from self._chunks()
            return
        left = int(self.headers.get("Content-Length") or 0)
        if fault.after_bytes is not None:
            left = min(left, fault.after_bytes)
        while left:
            piece = self.rfile.read(min(left, _PIECE_BYTES))
            if not piece:
                raise ConnectionError("the client went away in mid-upload")
            if fault.throttle:
                fault.throttle.take(len(piece))
            left -= len(piece)
            yield piece

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self.rfile.readline(), 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    def _control(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path == "/_faults":
            self.server.faults.put(json.loads(body or b"[]"))
        since = query_of(self.path).get("since")
        faults = self.server.faults
        found = faults.log if since is None else faults.all_requests(int(since))
        reply = json.dumps(found).encode()
        self._reply(Answer(200, [("Content-Type", "application/json")], reply), Fault(""))

    def _fail(self, fault: Fault) -> None:
        if fault.status == "reset":
            self._reset()
        else:
            assert isinstance(fault.status, int)
            self._reply(_error(fault.status, "injected"), Fault(""))

    def _reset(self) -> None:
        """Closes at once, so that the client sees a reset and not a time-out."""
        self.close_connection = True
        linger_no_time = struct.pack("ii", 1, 0)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger_no_time)
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def _reply(self, answer: Answer, fault: Fault) -> None:
        body = answer.body
        if fault.flip_bit and body:
            body = bytes([body[0] ^ 1]) + body[1:]
        self.send_response_only(answer.status)
        for key, value in answer.headers:
            is_size = self.command == "HEAD" and key.lower() == "content-length"
            if is_size or key.lower() not in _NOT_RETURNED:
                self.send_header(key, value)
        if self.command != "HEAD":
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        if fault.after_bytes is not None:
            self.wfile.write(body[: fault.after_bytes])
            return self._reset()
        self._send(memoryview(body), fault)

    def _send(self, body: memoryview, fault: Fault) -> None:
        if fault.throttle is None:
            self.wfile.write(body)
            return
        for start in range(0, len(body), _PIECE_BYTES):
            piece = body[start : start + _PIECE_BYTES]
            fault.throttle.take(len(piece))
            self.wfile.write(piece)

    def log_message(self, *args: object) -> None:
        pass


def _error(code: int, message: str) -> Answer:
    body = json.dumps({"error": {"code": code, "message": message}}).encode()
    return Answer(code, [("Content-Type", "application/json")], body)


def _arrived(num_bytes: int) -> Answer:
    headers = [("Range", f"bytes=0-{num_bytes - 1}")] if num_bytes else []
    return Answer(308, headers, b"")
