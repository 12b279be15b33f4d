"""A run in which something of every kind has happened."""

from datetime import datetime, timedelta, timezone

from tandem.checkpoints.fetching import Damage
from tandem.checkpoints.heartbeats import TRAINER, Heartbeat
from tandem.checkpoints.leases import Leases
from tandem.checkpoints.ledger import EntryOutcome, record_entry
from tandem.checkpoints.names import CheckpointId, EvalSet
from tandem.checkpoints.pins import pin
from tandem.checkpoints.policies import BestRule, RetentionPolicy
from tandem.checkpoints.records import encode
from tandem.checkpoints.runs import ensure_run
from tandem.checkpoints.surroundings import Surroundings
from tandem.checkpoints.tries import record_try
from tests.checkpoints.actors import FakeClock, Trainer, entry
from tests.checkpoints.hooked_store import HookedStore

SETS = (EvalSet("validation", "4b6f00aa11cc"), EvalSet("night", "77aa00bb22dd"))
THIRD = EvalSet("construction sites in the rain", "0011aabbccdd")
POLICY = RetentionPolicy(
    max_to_keep=7, keep_every_n_steps=10000, keep_best=(BestRule(count=2, eval_set="night"),)
)


NOW = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)
"""When the example is looked at: four hours after it began."""


class WallClock(FakeClock):
    """Whose wall clock moves with the monotonic one."""

    def __init__(self):
        super().__init__()
        self._begin = NOW - timedelta(hours=4)

    @property
    def surroundings(self):
        utc_now = lambda: self._begin + timedelta(seconds=self.now)  # noqa: E731
        plain = super().surroundings
        return Surroundings(
            monotonic=plain.monotonic, sleep=plain.sleep, utc_now=utc_now, nonce=plain.nonce
        )


def make_example_run(store, folder, *, sets=SETS):
    """Two attempts, eight checkpoints, an evaluator at work, a person's pin, some damage."""
    clock = WallClock()
    surroundings = clock.surroundings
    ensure_run(store, surroundings=surroundings)
    first = Trainer(store, clock, folder, policy=POLICY, sets=sets, holder="trainer-0/1")
    values = {1000: 0.112, 2000: 0.231, 3000: 0.344, 4000: 0.371, 5000: 0.362}
    for step, value in values.items():
        clock.now += 1300
        saved = first.save(step)
        for position, eval_set in enumerate(sets):
            if (step, position) == (2000, 1):
                scored = entry(
                    saved, eval_set=eval_set, outcome=EntryOutcome.FAILED, nonce="n",
                    reasons=("ResourceExhaustedError: out of memory",) * 3,
                )  # fmt: skip
            else:
                scored = entry(saved, metric=value - 0.1 * position, eval_set=eval_set)
            record_entry(store, scored, surroundings=surroundings)
    clock.now += 1300
    first.commit(6000)
    clock.now += 1300
    later = []

    def begin_another(operation, name):
        if operation == "create" and name.endswith("7000-1.commit.json"):
            trainer = Trainer(store, clock, folder, policy=POLICY, sets=sets, holder="trainer-0/1")
            later.append(trainer)

    first.commit(7000, store=HookedStore(store, before=begin_another))
    for step in (7000, 8000):
        clock.now += 1300
        later[0].save(step)
    store.create("checkpoints/ckpt-9000-2.index", b"under way")
    record_try(store, CheckpointId(7000, 2), sets[0], recorder="e", surroundings=surroundings)
    record_try(store, CheckpointId(7000, 2), sets[0], recorder="e", surroundings=surroundings)
    leases = Leases(store, holder="evaluator-0/17", surroundings=surroundings)
    clock.now = 4 * 3600 - 12
    leases.acquire(CheckpointId(7000, 2), sets[0].name, eval_set=sets[0])
    leases.acquire(CheckpointId(4000, 1), "export")
    pin(
        store, CheckpointId(3000, 1), reason="shipped as release 3", by="ann@desk",
        surroundings=surroundings,
    )  # fmt: skip
    damage = Damage(
        nonce="d",
        checkpoint=CheckpointId(6000, 1),
        file="checkpoints/ckpt-6000-1.index",
        expected="120 bytes, crc32c 0a1b2c3d",
        found="120 bytes, crc32c 99887766",
        found_by="evaluator-0/17",
        found_at=surroundings.timestamp(),
    )
    store.create("checkpoints/ckpt-6000-1.damaged.json", encode(damage))
    clock.now = 4 * 3600 - 3
    beats = Heartbeat(store, TRAINER, attempt=2, surroundings=surroundings)
    beats.beat("training", 8640)
    return clock
