"""A namespace of one Job in memory, and switches for what goes wrong."""

import threading

from tandem.errors import ClusterNotFoundError
from tandem.kube.objects import Kind, Subject

JOB = Subject(Kind.JOB, "trainer")


class MemoryNamespace:
    """What was told, in order; `errors` by call are raised in its place."""

    def __init__(self):
        self.events = {}
        self.annotations = {}
        self.patches = 0
        self.errors = {}
        self.calls = []
        self.hangs = threading.Event()

    def _begin(self, call):
        self.calls.append(call)
        if call in self.errors:
            raise self.errors[call]

    def uid(self, subject):
        self._begin("uid")
        return "uid-1"

    def annotate(self, subject, annotations):
        self._begin("annotate")
        self.patches += 1
        self.annotations |= annotations

    def create_event(self, subject, uid, event):
        self._begin("create")
        assert (subject, uid) == (JOB, "uid-1")
        name = f"trainer.{len(self.events)}"
        self.events[name] = [event.reason, event.message, 1]
        return name

    def repeat_event(self, name, *, count):
        self._begin("repeat")
        if name not in self.events:
            raise ClusterNotFoundError(name)
        self.events[name][2] = count

    @property
    def told(self):
        return [tuple(event) for event in self.events.values()]
