"""Leases: a reader's claim on a checkpoint for one purpose (an evaluation set, `export`, ...).

A lease keeps the checkpoint from being retired and divides work: one per checkpoint and purpose.

- acquire: put the lease, then look: the commit is gone, or an intent to retire or a ledger entry is
  there, let go and choose again. (Whoever retires puts its intent first and looks at leases second,
  so of the two at least one sees the other.)
- renew, well within `lease_seconds` and within the minute that others respect a lease for. When it
  came late, the lease may have looked stale to others: look again. When it is gone, or someone
  else's by now, stop.
- release by generation, so never another's.
- A lease that has not changed for `lease_seconds` on the observer's clock is stale; it is taken
  over, or removed, by its generation.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from tandem.checkpoints import names, writing
from tandem.checkpoints.ledger import read_all
from tandem.checkpoints.names import CheckpointId, EvalSet
from tandem.checkpoints.objects import ObjectStore
from tandem.checkpoints.records import CheckpointField, Record, encode
from tandem.checkpoints.surroundings import SYSTEM, Surroundings
from tandem.checkpoints.watching import GenerationWatch
from tandem.errors import (
    GenerationMismatchError,
    ObjectNotFoundError,
    StoreUnavailableError,
)

_logger = logging.getLogger(__name__)

RESPECTED_SECONDS = 60.0
"""For how long trainers respect a lease that doesn't change, whatever its holder is told."""


class LeaseRecord(Record):
    """A reader's claim; the holder is for people."""

    kind: ClassVar[str] = "lease"
    checkpoint: CheckpointField
    purpose: str
    holder: str
    renewed_at: str


@dataclass(frozen=True)
class Lease:
    """A lease that this process holds.

    Attributes:
        checkpoint: the checkpoint that stays.
        purpose: what for.
        eval_set: the evaluation set whose entry would make the lease pointless, if any.
        generation: of the lease's object.
        renewed_at: monotonic seconds just before it was last put.
    """

    checkpoint: CheckpointId
    purpose: str
    eval_set: EvalSet | None
    generation: str
    renewed_at: float

    @property
    def name(self) -> str:
        """The lease's object."""
        return names.lease_name(self.checkpoint, self.purpose)


class Leases:
    """Takes, renews and releases leases for one process."""

    def __init__(
        self,
        store: ObjectStore,
        *,
        holder: str,
        lease_seconds: float = RESPECTED_SECONDS,
        ledger: ObjectStore | None = None,
        is_open: Callable[[CheckpointId], bool] | None = None,
        surroundings: Surroundings = SYSTEM,
    ) -> None:
        """Takes leases as one holder.

        Args:
            store: that leases are in.
            holder: this process, for people.
            lease_seconds: how long another's lease that isn't renewed is respected.
            ledger: store that the ledger is in, where it is another.
            is_open: whether a checkpoint may be read; None looks for its commit and intent.
            surroundings: clock, randomness.
        """
        self._store = store
        self._ledger = ledger or store
        self._is_open = is_open or self._is_committed
        self._holder = holder
        self._fresh_seconds = min(lease_seconds, RESPECTED_SECONDS)
        self._surroundings = surroundings
        self._watch = LeaseWatch(store, lease_seconds=lease_seconds, surroundings=surroundings)

    @property
    def renew_seconds(self) -> float:
        """After how long a lease of this process is to be renewed: well before it looks stale."""
        return self._fresh_seconds / 4

    def acquire(
        self, checkpoint: CheckpointId, purpose: str, *, eval_set: EvalSet | None = None
    ) -> Lease | None:
        """Takes a lease, also one that has gone stale.

        Returns:
            None when another holder has it, or when there is nothing (more) to do: choose again.
        """
        sighting = self._watch.look(names.lease_name(checkpoint, purpose))
        if sighting.is_live:
            return None
        lease = self._put(checkpoint, purpose, eval_set, generation=sighting.generation)
        if lease is not None and not self._is_worth_reading(lease):
            self.release(lease)
            return None
        return lease

    def renew(self, lease: Lease) -> Lease | None:
        """Renews a lease; None when it is lost, and reading has to stop."""
        renewed = self._put(
            lease.checkpoint, lease.purpose, lease.eval_set, generation=lease.generation
        )
        if renewed is None:
            return None
        was_late = self._surroundings.monotonic() - lease.renewed_at >= self._fresh_seconds
        if was_late and not self._is_worth_reading(renewed):
            self.release(renewed)
            return None
        return renewed

    def why_lost(self, lease: Lease) -> str:
        """What became of a lease that could not be renewed, for people."""
        try:
            found = read_leases(self._store, lease.name).get(lease.name)
        except StoreUnavailableError as error:
            return f"its lease is lost, and can't be looked at: {error}"
        if found is not None:
            return f"{found.holder} has taken its lease over"
        return "its lease was taken for stale and removed, or there was nothing left to read it for"

    def release(self, lease: Lease) -> None:
        """Lets go; a lease that another holder has taken over stays that holder's."""
        try:
            self._store.delete(lease.name, generation=lease.generation)
        except (ObjectNotFoundError, GenerationMismatchError):
            _logger.info("%s was not ours any more", lease.name)
        except StoreUnavailableError as error:
            _logger.warning("%s is left to go stale: %s", lease.name, error)

    def _put(
        self,
        checkpoint: CheckpointId,
        purpose: str,
        eval_set: EvalSet | None,
        *,
        generation: str | None,
    ) -> Lease | None:
        record = LeaseRecord(
            nonce=self._surroundings.nonce(),
            checkpoint=checkpoint,
            purpose=purpose,
            holder=self._holder,
            renewed_at=self._surroundings.timestamp(),
        )
        now = self._surroundings.monotonic()
        name = names.lease_name(checkpoint, purpose)
        try:
            stat = writing.replace(
                self._store,
                name,
                encode(record),
                generation=generation,
                surroundings=self._surroundings,
            )
        except GenerationMismatchError:
            return None
        return Lease(checkpoint, purpose, eval_set, stat.generation, now)

    def _is_worth_reading(self, lease: Lease) -> bool:
        if not self._is_open(lease.checkpoint):
            return False
        if lease.eval_set is None:
            return True
        entry = names.entry_name(lease.checkpoint, lease.eval_set)
        return entry not in self._ledger.list(entry)

    def _is_committed(self, checkpoint: CheckpointId) -> bool:
        def of(suffix: str) -> str:
            return names.checkpoint_object(checkpoint, suffix)

        listed = self._store.list(of("."))
        return of(names.COMMIT_SUFFIX) in listed and of(names.INTENT_SUFFIX) not in listed


@dataclass(frozen=True)
class LeaseSighting:
    """What an observer knows of a lease; no object is not live.

    Attributes:
        generation: of the lease's object, if there is one.
        is_live: whether it is there, and not stale.
        is_open: whether it is live only because this observer hasn't watched for long enough.
    """

    generation: str | None
    is_live: bool
    is_open: bool = False


class LeaseWatch:
    """Tells live leases from stale ones, for one observer."""

    def __init__(
        self, store: ObjectStore, *, lease_seconds: float, surroundings: Surroundings = SYSTEM
    ) -> None:
        self._store = store
        self._lease_seconds = lease_seconds
        self._watch = GenerationWatch(store, surroundings=surroundings)

    def look(self, name: str) -> LeaseSighting:
        """Looks at a lease; one that this observer sees for the first time is live."""
        seen = self._watch.look(name)
        if seen.generation is None:
            self._watch.forget(name)
            return LeaseSighting(None, is_live=False)
        is_live = seen.unchanged_seconds < self._lease_seconds
        return LeaseSighting(
            seen.generation, is_live=is_live, is_open=is_live and not seen.has_changed
        )

    def look_at_all(self) -> dict[str, LeaseSighting]:
        """Looks at every lease there is."""
        return {n: self.look(n) for n in self._store.list(names.LEASES) if names.parse_lease(n)}

    def live_checkpoints(self) -> frozenset[CheckpointId]:
        """The checkpoints that some live lease is on."""
        live = (name for name, sighting in self.look_at_all().items() if sighting.is_live)
        return frozenset(c for name in live if (c := names.parse_lease(name)))

    def clear(self, checkpoint: CheckpointId) -> bool:
        """Removes a checkpoint's stale leases; False when a live one is there.

        Removing them by generation makes sure that none came back to life since it was looked at.
        """
        cleared = [self.remove_stale(n) for n in self._store.list(names.leases_of(checkpoint))]
        return all(cleared)

    def remove_stale(self, name: str) -> bool:
        """Removes a lease unless it is live; whether it is gone."""
        sighting = self.look(name)
        if sighting.is_live:
            return False
        return sighting.generation is None or self._remove(name, sighting.generation)

    def _remove(self, name: str, generation: str) -> bool:
        try:
            self._store.delete(name, generation=generation)
        except ObjectNotFoundError:
            return True
        except GenerationMismatchError:
            return False
        return True


def read_leases(store: ObjectStore, prefix: str = names.LEASES) -> dict[str, LeaseRecord]:
    """The leases by name; one that is damaged or gone is left out, with a log line."""
    found = [name for name in store.list(prefix) if names.parse_lease(name)]
    return read_all(store, found, LeaseRecord)
