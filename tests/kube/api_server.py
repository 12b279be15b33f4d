"""An API server in small: answers a few lists, on loopback."""

import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

LABELS = {
    "app.kubernetes.io/name": "tandem",
    "app.kubernetes.io/instance": "fox",
}


def metadata(name, component=None, **labels):
    own = {"app.kubernetes.io/component": component} if component else {}
    return {
        "name": name,
        "namespace": "ml",
        "creationTimestamp": "2026-01-31T12:00:00Z",
        "labels": LABELS | own | labels,
    }


def template(run):
    return {"spec": {"containers": [{"name": "trainer", "args": [f"--run={run}", "--seed=1"]}]}}


class ApiServer:
    """Answers what `lists` holds by path; other paths are refused, as without a right."""

    def __init__(self):
        self.lists = {}
        self.queries = []

    def answer(self, target):
        parts = urlsplit(target)
        self.queries.append((parts.path, parse_qs(parts.query)))
        if parts.path not in self.lists:
            return 403, {"kind": "Status", "message": f"{parts.path} is forbidden"}
        asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
        items, start = self.lists[parts.path], int(asked.get("continue", 0))
        end = start + int(asked.get("limit", len(items)))
        more = {"continue": str(end)} if end < len(items) else {}
        return 200, {"metadata": more, "items": items[start:end]}


@contextlib.contextmanager
def serving(server):
    """Its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            status, body = server.answer(self.path)
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{http.server_port}"
    finally:
        http.shutdown()
        http.server_close()
        thread.join()


def kubeconfig(url):
    """The text of a kubeconfig that leads to a server."""
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "here",
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
            "clusters": [{"name": "here", "cluster": {"server": url}}],
            "users": [{"name": "me", "user": {"token": "secret"}}],
        }
    )
