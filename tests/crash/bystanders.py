"""Who else has to do with a run: one who exports, one who pins, and `tandem store gc`."""

import contextlib

from tandem.checkpoints.collecting import collect
from tandem.checkpoints.fetching import fetch_checkpoint
from tandem.checkpoints.leases import Leases
from tandem.checkpoints.lines import read_line
from tandem.checkpoints.pins import pin, unpin
from tandem.errors import (
    AttemptSupersededError,
    CheckpointDamagedError,
    ObjectNotFoundError,
    RunConflictError,
    StoreUnavailableError,
)
from tests.crash.reading import files_at
from tests.crash.scenarios import LEASE_SECONDS

_LOOK_EVERY_SECONDS = 5.0
_LOOKS = 40


class _LeaseLostError(Exception):
    pass


class Exporter:
    """Reads some checkpoints, each again and again for a while, under a lease of its own."""

    def __init__(self, store, witness, random, *, number, scratch):
        self._store = store
        self._witness = witness
        self._random = random
        self._left = number
        self._scratch = scratch

    def __call__(self, process):
        self._process = process
        self._leases = Leases(
            self._store,
            holder=process.name,
            lease_seconds=LEASE_SECONDS,
            surroundings=process.surroundings,
        )
        for _ in range(_LOOKS):
            with contextlib.suppress(StoreUnavailableError):
                self._left -= self._export_one()
            if self._left == 0:
                return
            process.sleep(_LOOK_EVERY_SECONDS)

    def _export_one(self):
        readable = read_line(self._store).readable
        if not readable:
            return False
        # The oldest is the one to be retired next.
        checkpoint = self._random.choice((readable[0], self._random.choice(readable)))
        self._lease = self._leases.acquire(checkpoint, "export")
        if self._lease is None:
            return False
        try:
            self._read()
            for _ in range(self._random.choice((1, 2, 6))):
                self._process.sleep(LEASE_SECONDS / 5)
                self._renew_if_due()
                self._read()
        except (_LeaseLostError, ObjectNotFoundError, CheckpointDamagedError):
            return False
        finally:
            self._leases.release(self._lease)
        return True

    def _read(self):
        checkpoint = self._lease.checkpoint
        fetched = fetch_checkpoint(
            self._store,
            checkpoint,
            self._scratch,
            reader=self._process.name,
            on_piece=self._renew_if_due,
            surroundings=self._process.surroundings,
        )
        self._witness.fetched(self._process, checkpoint, files_at(fetched.prefix))

    def _renew_if_due(self):
        if self._process.monotonic() - self._lease.renewed_at < LEASE_SECONDS / 4:
            return
        renewed = self._leases.renew(self._lease)
        if renewed is None:
            raise _LeaseLostError
        self._lease = renewed


class Pinner:
    """Pins a random checkpoint; some pins are taken away again."""

    def __init__(self, store, witness, random):
        self._store = store
        self._witness = witness
        self._random = random

    def __call__(self, process):
        for _ in range(_LOOKS):
            with contextlib.suppress(StoreUnavailableError):
                checkpoints = read_line(self._store).checkpoints
                if checkpoints:
                    self._pin(process, self._random.choice(checkpoints))
                    return
            process.sleep(_LOOK_EVERY_SECONDS)

    def _pin(self, process, checkpoint):
        with contextlib.suppress(RunConflictError):
            pin(
                self._store,
                checkpoint,
                reason="the one we shipped",
                by=process.name,
                surroundings=process.surroundings,
            )
            self._witness.confirmed_pin(checkpoint)
            if self._random.random() < 0.3:
                process.sleep(self._random.choice((1.0, 10.0)))
                unpin(self._store, checkpoint)


class Sweeper:
    """Runs `tandem store gc` once."""

    def __init__(self, store):
        self._store = store
        self.is_done = False

    def __call__(self, process):
        with contextlib.suppress(RunConflictError, AttemptSupersededError):
            collect(
                self._store,
                lease_seconds=LEASE_SECONDS,
                on_wait=lambda message: None,
                surroundings=process.surroundings,
            )
            self.is_done = True
