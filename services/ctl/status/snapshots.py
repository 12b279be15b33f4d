"""A run folder as one listing shows it, with the objects that were read ahead, all at once."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import cast

from services.ctl.status.hurrying import Answer, Hurry
from tandem.checkpoints.objects import ObjectStore, StoredObject
from tandem.errors import ObjectNotFoundError


class Snapshot:
    """Lists from one listing, and reads each object once.

    Args:
        store: the run's.
        hurry: asks it.
    """

    def __init__(self, store: ObjectStore, hurry: Hurry) -> None:
        self._store = store
        self._hurry = hurry
        self.times = hurry.result(hurry.ask(lambda: store.list_times("")))
        """Every object, with when it was put, by the store's clock."""
        self._answers: dict[str, Answer[StoredObject]] = {}

    @property
    def location(self) -> str:
        """As the store's."""
        return self._store.location

    def ask_for(self, names: Iterable[str]) -> None:
        """Begins to read objects; `get` then waits for each."""
        wanted = [name for name in names if name in self.times and name not in self._answers]
        self._answers |= self._hurry.ask_all(
            {name: (lambda name=name: self._store.get(name)) for name in wanted}  # type: ignore[misc]
        )

    def list(self, prefix: str) -> list[str]:
        """All names that begin with the prefix, sorted."""
        return [name for name in self.times if name.startswith(prefix)]

    def get(self, name: str) -> StoredObject:
        """An object, as it was read first; raises what reading it raised."""
        if name not in self._answers:
            self._answers[name] = self._hurry.ask(lambda: self._store.get(name))
        return self._hurry.result(self._answers[name])

    def has(self, name: str) -> bool:
        """Whether an object is there, or has come since the listing."""
        if name in self.times:
            return True
        try:
            self._hurry.result(self._hurry.ask(lambda: self._store.stat(name)))
        except ObjectNotFoundError:
            return False
        return True

    def local_path(self, name: str) -> Path | None:
        """As the store's."""
        return self._store.local_path(name)

    @property
    def as_store(self) -> ObjectStore:
        """For the readers of records, which list and get."""
        return cast("ObjectStore", self)
