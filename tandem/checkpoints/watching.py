"""How long an object has not changed, on the observer's own clock.

Nobody compares two machines' clocks: a heartbeat or a lease is stale when an observer has itself
seen it unchanged for long enough.
"""

from __future__ import annotations

from typing import NamedTuple

from tandem.checkpoints import writing
from tandem.checkpoints.objects import ObjectStore
from tandem.checkpoints.surroundings import SYSTEM, Surroundings


class Sighting(NamedTuple):
    """What an observer knows of an object that its owner keeps replacing.

    Attributes:
        data: the object's bytes; None when there is no object.
        generation: its generation; None when there is no object.
        unchanged_seconds: for how long it has been like this, as far as this observer saw.
        has_changed: whether this observer has seen it change.
    """

    data: bytes | None
    generation: str | None
    unchanged_seconds: float
    has_changed: bool


class GenerationWatch:
    """Measures for how long objects stay unchanged, on the observer's own clock."""

    def __init__(self, store: ObjectStore, *, surroundings: Surroundings = SYSTEM) -> None:
        self._store = store
        self._surroundings = surroundings
        self._seen: dict[str, tuple[str | None, float, bool]] = {}

    def look(self, name: str) -> Sighting:
        """Looks at an object; the first look of all finds it unchanged for 0 seconds."""
        began = self._surroundings.monotonic()
        found = writing.find(self._store, name)
        generation = found.stat.generation if found else None
        before = self._seen.get(name)
        if before is None or before[0] != generation:
            began = self._surroundings.monotonic()
            self._seen[name] = (generation, began, before is not None)
        # A slow read must not make the silence longer: it counts up to when the read began.
        _, since, has_changed = self._seen[name]
        return Sighting(found.data if found else None, generation, began - since, has_changed)

    def forget(self, name: str) -> None:
        """Starts over with an object."""
        self._seen.pop(name, None)
