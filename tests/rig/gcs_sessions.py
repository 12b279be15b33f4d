"""Upload sessions of the shim.

The chunks are kept here, and passed on to fake-gcs-server as one plain upload once the last has
come: its own sessions sum up all that has arrived anew with each chunk, and while it takes an
upload in, it answers nobody else.
"""

from __future__ import annotations

import http.client
import threading
from urllib.parse import quote

from tests.rig.gcs_objects import Answer, Target


class Session:
    """A resumable upload: what has arrived of it, and the answer to its last chunk."""

    def __init__(self, target: Target, upstream: str, content_type: str) -> None:
        self.target = target
        self.lock = threading.Lock()
        self.num_arrived = 0
        self.answer: Answer | None = None
        self._upstream = upstream
        self._content_type = content_type
        self._pieces: list[bytes] = []

    def take(self, start: int, piece: bytes) -> None:
        """Takes a piece of a chunk, some of which may have arrived before."""
        new = piece[max(0, self.num_arrived - start) :]
        self.num_arrived += len(new)
        self._pieces.append(new)

    def finish(self, answer: Answer | None) -> Answer:
        """Ends the session: with the given answer, or by putting the object."""
        self.answer = answer or self._put()
        self._pieces = []
        return self.answer

    def _put(self) -> Answer:
        query = f"uploadType=media&name={quote(self.target.name, safe='')}"
        path = f"/upload/storage/v1/b/{self.target.bucket}/o?{query}"
        headers = {"Content-Type": self._content_type, "Content-Length": str(self.num_arrived)}
        connection = http.client.HTTPConnection(self._upstream, timeout=300)
        connection.request("POST", path, body=iter(self._pieces), headers=headers)
        response = connection.getresponse()
        found = Answer(response.status, response.getheaders(), response.read())
        connection.close()
        return found
