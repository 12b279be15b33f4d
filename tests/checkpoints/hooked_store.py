"""A client of a store that can be stopped, or interleaved with others, around every operation."""

import re

from tandem.checkpoints.objects import nothing


def _pass(operation, name):
    pass


class HookedStore:
    """Calls `before(operation, name)` and `after(operation, name)` around each operation.

    What `before` raises stops the client with nothing done; what `after` raises, with it done.
    """

    def __init__(self, store, *, before=_pass, after=_pass):
        self._store = store
        self._before = before
        self._after = after

    @property
    def location(self):
        return self._store.location

    def local_path(self, name):
        return self._store.local_path(name)

    def create(self, name, data):
        return self._around("create", name, data)

    def create_from_file(self, name, path, **told):
        return self._around("create_from_file", name, path, **told)

    def replace(self, name, data, *, generation):
        return self._around("replace", name, data, generation=generation)

    def get(self, name):
        return self._around("get", name)

    def read(self, name, *, start, size):
        return self._around("read", name, start=start, size=size)

    def stat(self, name):
        return self._around("stat", name)

    def generation(self, name):
        return self._around("generation", name)

    def list_times(self, prefix):
        return self._around("list_times", prefix)

    def list(self, prefix):
        return self._around("list", prefix)

    def delete(self, name, *, generation):
        return self._around("delete", name, generation=generation)

    def download(self, name, path, *, on_piece=nothing):
        return self._around("download", name, path, on_piece=on_piece)

    def _around(self, operation, name, *args, **kwargs):
        self._before(operation, name)
        result = getattr(self._store, operation)(name, *args, **kwargs)
        self._after(operation, name)
        return result


def once(operation, pattern, action):
    """A hook that runs an action at the first operation on a name that matches."""
    state = {"done": False}

    def hook(found_operation, name):
        if not state["done"] and found_operation == operation and re.search(pattern, name):
            state["done"] = True
            action()

    hook.state = state
    return hook
