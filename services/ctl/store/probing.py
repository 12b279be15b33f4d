"""`tandem store probe`: whether this process may do with a run folder all that a trainer does."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from services.ctl.store.printing import print_json
from services.exits import Exit
from tandem.checkpoints.objects import ObjectStore
from tandem.errors import GenerationMismatchError, ObjectExistsError, StoreError

_FOLDER = "probes"


def probe(store: ObjectStore, *, as_json: bool) -> Exit:
    """Puts an object, replaces, lists, reads and deletes it.

    Raises:
        InputError: the place can't be used as the message says.
        StoreError: it does not do what a run store needs.
    """
    seconds = _Steps()
    name = f"{_FOLDER}/{uuid.uuid4().hex}"
    first, second = b'{"probe": 1}', b'{"probe": 2}'
    with seconds.of("create"):
        stat = store.create(name, first)
    try:
        with seconds.of("refuse a second create"):
            _expect(ObjectExistsError, lambda: store.create(name, second), store)
        with seconds.of("replace"):
            new = store.replace(name, second, generation=stat.generation)
        with seconds.of("refuse a late replace"):
            _expect(
                GenerationMismatchError,
                lambda: store.replace(name, first, generation=stat.generation),
                store,
            )
        with seconds.of("list"):
            listed = store.list(f"{_FOLDER}/")
        with seconds.of("read"):
            found = store.get(name)
        if name not in listed or found.data != second or found.stat != new:
            raise StoreError(
                f"{store.location}: the probe {name} was put as {new}, and found as {found.stat}; "
                "a run store shows what was put at once: expected a local disk, NFS or gs://"
            )
    finally:
        with seconds.of("delete"):
            store.delete(name, generation=store.generation(name))
    _show(store.location, seconds.taken, as_json=as_json)
    return Exit.FINISHED


class _Steps:
    def __init__(self) -> None:
        self.taken: dict[str, float] = {}

    @contextmanager
    def of(self, step: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.taken[step] = time.monotonic() - began


def _expect(kind: type[StoreError], call: Callable[[], object], store: ObjectStore) -> None:
    try:
        call()
    except kind:
        return
    raise StoreError(
        f"{store.location} overwrites what it should not: expected a refusal of a put whose "
        "precondition doesn't hold; a run store needs a local disk, NFS or gs://"
    )


def _show(location: str, seconds: dict[str, float], *, as_json: bool) -> None:
    if as_json:
        rounded = {step: round(taken, 6) for step, taken in seconds.items()}
        print_json({"location": location, "seconds": rounded})
        return
    print(f"{location} can hold a run:")
    for step, taken in seconds.items():
        print(f"  {step:<24}{1000 * taken:8.1f} ms")
