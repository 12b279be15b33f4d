"""A run folder read behind everyone's back: without locks, faults, or the store's code."""

import json
import os
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import quote, urlencode

from google_crc32c import value as crc32c


class FolderView:
    """A run in a local folder."""

    def __init__(self, folder: Path):
        self._folder = folder

    def names(self, prefix=""):
        """All objects' names; what begins with a dot is none."""
        found = []
        for folder, folders, files in os.walk(self._folder / prefix.rpartition("/")[0]):
            folders[:] = [name for name in folders if not name.startswith(".")]
            here = Path(folder).relative_to(self._folder)
            found += [(here / name).as_posix() for name in files if not name.startswith(".")]
        return [name for name in found if name.startswith(prefix)]

    def fingerprints(self, prefix):
        """A text by name, another one for other bytes."""
        found = {name: self.get(name) for name in self.names(prefix)}
        return {name: _fingerprint(data) for name, data in found.items() if data is not None}

    def get(self, name):
        """An object's bytes; None when there is none."""
        try:
            return (self._folder / name).read_bytes()
        except FileNotFoundError:
            return None

    def strays(self):
        """Files under way that nobody will come back for."""
        hidden = {path for path in self._folder.rglob(".*") if path.suffix != ".lock"}
        inside = {path for path in (self._folder / ".store").glob("*") if path.suffix != ".lock"}
        return sorted(str(path) for path in (hidden | inside) - {self._folder / ".store"})


class BucketView:
    """A run in a bucket, read from the server itself and not through its shim."""

    def __init__(self, url: str, bucket: str, prefix: str):
        self._url = f"{url}/storage/v1/b/{bucket}/o"
        self._prefix = f"{prefix}/"

    def names(self, prefix=""):
        return list(self.fingerprints(prefix))

    def fingerprints(self, prefix):
        found, token = {}, None
        while True:
            query = {"prefix": self._prefix + prefix} | ({"pageToken": token} if token else {})
            page = json.loads(self._call(f"?{urlencode(query)}"))
            for item in page.get("items", []):
                found[item["name"].removeprefix(self._prefix)] = f"{item['size']} {item['crc32c']}"
            token = page.get("nextPageToken")
            if not token:
                return found

    def get(self, name):
        try:
            return self._call(f"/{quote(self._prefix + name, safe='')}?alt=media")
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise

    def strays(self):
        return []

    def _call(self, rest):
        with urllib.request.urlopen(self._url + rest, timeout=60) as answer:
            return answer.read()


def _fingerprint(data):
    return f"{len(data)} {crc32c(data):08x}"
