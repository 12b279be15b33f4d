"""What an idle evaluator asks of the store in an hour: the real loop, on a clock that we move."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

from prometheus_client import CollectorRegistry

from services.evaluator.jobs import JobWatch
from services.evaluator.loop import Evaluator
from services.evaluator.recording import Recorder
from services.evaluator.sources import RunSource
from services.signals import StopRequest
from tandem.checkpoints.heartbeats import TRAINER, Heartbeat
from tandem.checkpoints.ledger import record_entry
from tandem.checkpoints.lines import read_line
from tandem.evaluation.build import EvalTask
from tandem.kube.reporting import Reporter
from tandem.telemetry.evaluator_metrics import EvaluatorMetrics
from tandem.telemetry.health import Health
from tests.checkpoints.actors import VAL, FakeClock, Trainer, entry
from tests.checkpoints.hooked_store import HookedStore
from tests.checkpoints.memory_store import MemoryStore

HOUR = 3600.0
_TRAINER_BEATS_EVERY = 5.0
_NUM_CHECKPOINTS = 7


class _Projection:
    def update(self, entries: object, *, among: object) -> None:
        """TensorBoard and metrics cost no operation of the store."""


class _Hour(StopRequest):
    """Waits by moving the clock; asks to stop after an hour, and counts from its second minute."""

    def __init__(self, clock: FakeClock, beat: Heartbeat, counted: Counter[str]) -> None:
        super().__init__()
        self._clock, self._beat, self._counted = clock, beat, counted
        self._began: float | None = None

    def wait(self, seconds: float) -> None:
        self._clock.now += seconds
        self._beat.beat("training", int(self._clock.now // _TRAINER_BEATS_EVERY))
        if self._began is None and self._clock.now >= 60:
            self._began = self._clock.now
            self._counted.clear()
        elif self._began is not None and self._clock.now >= self._began + HOUR:
            self.set()


def operations_per_hour(*, poll_interval: float = 10.0, others: int = 0) -> dict[str, int]:
    """Operations by kind of an evaluator that has scored everything, while the trainer trains.

    Args:
        poll_interval: seconds between looks.
        others: attempts that the run had before.
    """
    clock, store, counted = FakeClock(), MemoryStore(), Counter[str]()
    client = HookedStore(store, before=lambda operation, name: counted.update([operation]))
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(others + 1):
            trainer = Trainer(store, clock, Path(folder) / "files")
            trainer.save(trainer.attempt.number)
        for step in range(100, 100 + _NUM_CHECKPOINTS):
            trainer.save(step)
        stop = _Hour(clock, Heartbeat(store, TRAINER, attempt=trainer.attempt.number), counted)
        source = RunSource(
            client,
            results=client,
            reader="bench",
            scratch=Path(folder) / "scratch",
            lease_seconds=60.0,
            surroundings=clock.surroundings,
        )
        _score_all(store)
        Evaluator(
            source=source,
            results=client,
            load=lambda prefix: None,
            tasks=(EvalTask(VAL, None, include_categories=False),),
            projections={VAL.name: _Projection()},
            recorder=Recorder(client, source, name="bench"),
            heartbeat=Heartbeat(client, "evaluator-bench", surroundings=clock.surroundings),
            metrics=EvaluatorMetrics(CollectorRegistry()),
            health=Health(patience_seconds=60),
            policy="every",
            scratch=Path(folder) / "scratch",
            stop=stop,
            reporter=Reporter(None, None, closing_seconds=lambda: 0.0),
            trainer_job=JobWatch(None, None),
            surroundings=clock.surroundings,
        ).watch(wait_interval=1e9, poll_interval=poll_interval)
    return dict(counted)


def _score_all(store: MemoryStore) -> None:
    for checkpoint in read_line(store).checkpoints:
        record_entry(store, entry(checkpoint, metric=0.5))
