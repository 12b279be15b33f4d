"""An evaluator: the real loop, with a made-up model whose scores are the schedule's."""

import re
from types import SimpleNamespace

from prometheus_client import CollectorRegistry

from services.evaluator.jobs import JobWatch
from services.evaluator.loop import Evaluator as Loop
from services.evaluator.recording import Recorder
from services.evaluator.sources import RunSource
from services.signals import StopRequest
from tandem.checkpoints.bests import best_entry, write_best
from tandem.checkpoints.heartbeats import Heartbeat, evaluator_process
from tandem.checkpoints.policies import MAIN_METRIC
from tandem.kube.reporting import silent
from tandem.telemetry.evaluator_metrics import EvaluatorMetrics
from tandem.telemetry.health import Health
from tests.crash.reading import files_at
from tests.crash.scenarios import LEASE_SECONDS

_POLL_SECONDS = 8.0
_PIECES = 3


class _Stop(StopRequest):
    """Waits on the schedule's clock; nobody asks to stop."""

    def __init__(self, process):
        super().__init__()
        self._process = process

    def wait(self, seconds):
        self._process.sleep(seconds)


class _Best:
    """The projection `best/SET.json`."""

    def __init__(self, store, surroundings):
        self._store = store
        self._surroundings = surroundings
        self._written = None

    def update(self, entries, *, among):
        best = best_entry(entries, metric=MAIN_METRIC, among=among)
        if best is not None and best != self._written:
            write_best(self._store, best, metric=MAIN_METRIC, surroundings=self._surroundings)
            self._written = best


class _Scorer:
    """Takes its time, and ends as the schedule's scores say."""

    def __init__(self, evaluator, eval_set):
        self._evaluator = evaluator
        self._eval_set = eval_set

    def score(self, *, on_progress, monotonic):
        evaluator = self._evaluator
        for piece in range(1, _PIECES + 1):
            evaluator.process.sleep(evaluator.scenario.score_seconds / _PIECES)
            evaluator.scores.strike(evaluator.process, evaluator.loaded)
            evaluator.look_again()
            on_progress(piece, _PIECES)
        value = evaluator.scores.of(evaluator.loaded, self._eval_set)
        metrics = SimpleNamespace(by_tag=lambda **_: {MAIN_METRIC: value}, ap=value, ap50=value)
        return SimpleNamespace(
            metrics=metrics,
            losses={},
            num_expected=_PIECES,
            num_read=_PIECES,
            num_scored=_PIECES,
            model_seconds=1.0,
            metrics_seconds=1.0,
        )


class Scores:
    """What each checkpoint scores, and which ones no evaluation survives."""

    def __init__(self, random, *, poisons):
        self._random = random
        self._values = {}
        self._poisons = poisons
        self._struck = {}

    def of(self, checkpoint, eval_set):
        key = (checkpoint, eval_set)
        if key not in self._values:
            self._values[key] = self._random.randint(0, 9) / 10.0
        return self._values[key]

    def strike(self, process, checkpoint):
        """Kills the evaluator of a poisonous checkpoint, or fails its try, each time."""
        if checkpoint not in self._struck:
            is_poison = self._poisons > 0 and self._random.random() < 0.3
            self._poisons -= is_poison
            self._struck[checkpoint] = self._random.choice(("kill", "fail")) if is_poison else None
        if self._struck[checkpoint] == "kill":
            process.die()
        if self._struck[checkpoint] == "fail":
            raise RuntimeError("a bad batch")


class Evaluator:
    """One life of an evaluator: a program for a process."""

    def __init__(self, store, witness, scenario, plan, scores, *, scratch):
        self._store = store
        self._witness = witness
        self._plan = plan
        self._scratch = scratch
        self.scenario = scenario
        self.scores = scores
        self.process = None
        self.loaded = None
        self.ending = None
        self._prefix = None

    def __call__(self, process):
        self.process = process
        surroundings = process.surroundings
        source = RunSource(
            self._store,
            results=self._store,
            reader=process.name,
            scratch=self._scratch,
            lease_seconds=LEASE_SECONDS,
            surroundings=surroundings,
        )
        eval_sets = self.scenario.eval_sets
        loop = Loop(
            source=source,
            results=self._store,
            load=self._load,
            tasks=tuple(
                SimpleNamespace(eval_set=s, scorer=_Scorer(self, s), include_categories=False)
                for s in eval_sets
            ),
            projections={s.name: _Best(self._store, surroundings) for s in eval_sets},
            recorder=Recorder(self._store, source, name=process.name, surroundings=surroundings),
            heartbeat=Heartbeat(
                self._store, evaluator_process(process.name), surroundings=surroundings
            ),
            metrics=EvaluatorMetrics(CollectorRegistry()),
            health=Health(patience_seconds=60.0, monotonic=process.monotonic),
            policy=self._plan.policy,
            scratch=self._scratch,
            stop=_Stop(process),
            reporter=silent(),
            trainer_job=JobWatch(None, None),
            surroundings=surroundings,
        )
        self.ending = loop.watch(wait_interval=float("inf"), poll_interval=_POLL_SECONDS)

    def look_again(self):
        """Where there are files, they are still those that were committed while the lease lives."""
        if self._store.local_path(f"checkpoints/ckpt-{self.loaded[0]}-{self.loaded[1]}.index"):
            lives = self._witness.holds_live_lease(self.process, self.loaded)
            if lives and self.loaded not in self._witness.damaged:
                self._witness.fetched(self.process, self.loaded, files_at(self._prefix))

    def _load(self, prefix):
        step, attempt = re.fullmatch(r"ckpt-(\d+)-(\d+)", prefix.name).groups()
        self.loaded, self._prefix = (int(step), int(attempt)), prefix
        self._witness.fetched(self.process, self.loaded, files_at(prefix))
