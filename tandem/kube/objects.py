"""The objects of a namespace that Tandem's processes know, and what they may do with them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple, Protocol

from tandem.kube.jobs import JobState


class Kind(Enum):
    """A kind of object, by its API version and name."""

    JOB = ("batch/v1", "Job")
    DEPLOYMENT = ("apps/v1", "Deployment")

    @property
    def api_version(self) -> str:
        """As in a manifest."""
        return self.value[0]

    def __str__(self) -> str:
        return self.value[1]


class Subject(NamedTuple):
    """What a process belongs to and speaks about."""

    kind: Kind
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class EventText(NamedTuple):
    """What an Event says.

    Attributes:
        reason: a word in CamelCase, for machines and for filtering.
        message: a sentence for people.
        is_warning: whether someone should look.
    """

    reason: str
    message: str
    is_warning: bool = False


class Namespace(Protocol):
    """The calls that Tandem makes; each may raise a ClusterError."""

    def uid(self, subject: Subject) -> str:
        """The object's own id, which tells it from earlier ones of its name."""

    def job_state(self, name: str) -> JobState:
        """How far a Job is."""

    def annotate(self, subject: Subject, annotations: Mapping[str, str]) -> None:
        """Sets annotations of an object; others stay as they are."""

    def create_event(self, subject: Subject, uid: str, event: EventText) -> str:
        """Writes an Event about an object; returns its name."""

    def repeat_event(self, name: str, *, count: int) -> None:
        """Says that an Event took place again."""

    def scale(self, deployment: str, replicas: int) -> None:
        """Sets a Deployment's number of pods."""
