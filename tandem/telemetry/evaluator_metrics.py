"""What an evaluator exports; `tandem.telemetry.catalogue` defines the metrics."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import get_args

from prometheus_client import CollectorRegistry, Gauge

from tandem.telemetry.catalogue import EVALUATOR
from tandem.telemetry.definitions import Made, choose
from tandem.telemetry.labels import CocoMetric, EvalOutcome, EvalPhase, RunOutcome, TimedEvalPhase


class EvaluatorMetrics:
    """What an evaluator exports."""

    def __init__(
        self,
        registry: CollectorRegistry,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._monotonic = monotonic
        self._wall_clock = wall_clock
        self._seen_step: int | None = None
        self._seen_at = math.nan
        self._phase_now: EvalPhase = "starting"
        self._phase_began = monotonic()
        made = Made(registry, EVALUATOR)
        self._phase = made.gauge("tandem_eval_phase")
        self._phase_seconds = made.histogram("tandem_eval_phase_seconds")
        self._heartbeat = made.gauge("tandem_eval_heartbeat_timestamp_seconds")
        self._images_done = made.gauge("tandem_eval_images_done")
        self._images_expected = made.gauge("tandem_eval_images_expected")
        self._images_scored = made.counter("tandem_eval_images_scored_total")
        self._bad_records = made.counter("tandem_eval_bad_records_total")
        self._attempts = made.counter("tandem_eval_attempts_total")
        self._seconds = made.histogram("tandem_eval_seconds")
        self._backlog = made.gauge("tandem_eval_backlog")
        self._oldest_pending = made.gauge("tandem_ckpt_oldest_pending_timestamp_seconds")
        self._lag_budget = made.gauge("tandem_eval_lag_budget_seconds")
        self._lease_held = made.gauge("tandem_eval_lease_held")
        self._newest_step = made.gauge("tandem_eval_newest_checkpoint_step")
        self._newest_age = made.gauge("tandem_eval_newest_checkpoint_age_seconds")
        self._newest_age.set_function(lambda: self._monotonic() - self._seen_at)
        self._outcome = made.gauge("tandem_eval_run_outcome")
        self._metric = made.gauge("tandem_eval_metric")
        self._best_metric = made.gauge("tandem_eval_best_metric")
        self._best_step = made.gauge("tandem_eval_best_step")
        self._best_on_disk = made.gauge("tandem_eval_best_on_disk")
        self._last_step = made.gauge("tandem_eval_last_completed_step")
        self._last_time = made.gauge("tandem_eval_last_completed_timestamp_seconds")
        self._unreadable = made.gauge("tandem_eval_unreadable_entries")
        self.set_phase("starting")
        self.set_lease_held(held=False)

    def begin(self, eval_sets: Sequence[str], *, lag_budget_seconds: float) -> None:
        """Says which sets are scored, so that their counters begin at 0, and how late."""
        self._lag_budget.set(lag_budget_seconds)
        for name in map(_set_label, eval_sets):
            self._images_scored.labels(name)
            self._bad_records.labels(name)
            self._seconds.labels(name)
            for outcome in get_args(EvalOutcome):
                self._attempts.labels(name, outcome)

    def beat(self) -> None:
        """Shows that the loop itself lives: the metrics thread answers although the loop hangs."""
        self._heartbeat.set(self._wall_clock())

    def set_phase(self, phase: EvalPhase) -> None:
        """Says what the evaluator is doing from now on."""
        choose(self._phase, phase, get_args(EvalPhase))
        if phase != self._phase_now:
            now = self._monotonic()
            if self._phase_now in get_args(TimedEvalPhase):
                self._phase_seconds.labels(self._phase_now).observe(now - self._phase_began)
            self._phase_now, self._phase_began = phase, now
        self.beat()

    def set_lease_held(self, *, held: bool) -> None:
        """Says whether a checkpoint is held."""
        self._lease_held.set(int(held))

    def record_listing(
        self, *, newest_step: int | None, backlog: int, oldest_pending_at: float | None = None
    ) -> None:
        """Says what the run folder holds.

        Args:
            newest_step: None when it has no checkpoint.
            backlog: checkpoints that wait.
            oldest_pending_at: when the oldest of them was committed, in seconds since 1970.
        """
        self._backlog.set(backlog)
        waits = math.nan if backlog else 0
        self._oldest_pending.set(waits if oldest_pending_at is None else oldest_pending_at)
        if newest_step is not None and newest_step != self._seen_step:
            self._seen_step, self._seen_at = newest_step, self._monotonic()
            self._newest_step.set(newest_step)
        self.beat()

    def show_outcome(self, outcome: RunOutcome | None) -> None:
        """Shows the run's outcome; None before the first attempt."""
        choose(self._outcome, outcome, get_args(RunOutcome))

    def show_unreadable_entries(self, number: int) -> None:
        """Shows how much of the ledger can't be read."""
        self._unreadable.set(number)

    def record_images(self, done: int, *, expected: int) -> None:
        """Says how far the evaluation under way is."""
        self._images_done.set(done)
        self._images_expected.set(expected)
        self.beat()

    def count_bad_records(self, eval_set: str, number: int) -> None:
        """Counts records that could not be read."""
        self._bad_records.labels(_set_label(eval_set)).inc(number)

    def count_attempt(
        self, eval_set: str, *, outcome: EvalOutcome, seconds: float = 0.0, num_images: int = 0
    ) -> None:
        """Counts an evaluation that ended; a skipped one took no time."""
        name = _set_label(eval_set)
        self._attempts.labels(name, outcome).inc()
        self._images_scored.labels(name).inc(num_images)
        if outcome != "skipped":
            self._seconds.labels(name).observe(seconds)

    def show_scored(
        self,
        eval_set: str,
        *,
        step: int,
        metrics: Mapping[CocoMetric, float | None],
        completed_at: float | None = None,
    ) -> None:
        """Shows the newest scored checkpoint of a set.

        Args:
            eval_set: its name; empty for the only, unnamed one.
            step: the checkpoint's.
            metrics: None, NaN and -1 mean that there was no ground truth to measure by.
            completed_at: seconds since 1970, when it comes from the ledger; None: now.
        """
        name = _set_label(eval_set)
        _show_metrics(self._metric, name, metrics)
        self._last_step.labels(name).set(step)
        when = self._wall_clock() if completed_at is None else completed_at
        self._last_time.labels(name).set(when)

    def show_best(
        self, eval_set: str, *, step: int, metrics: Mapping[CocoMetric, float | None]
    ) -> None:
        """Shows the best checkpoint of a set so far; arguments as for `show_scored`."""
        name = _set_label(eval_set)
        _show_metrics(self._best_metric, name, metrics)
        self._best_step.labels(name).set(step)

    def show_best_on_disk(self, eval_set: str, *, on_disk: bool) -> None:
        """Shows whether the best checkpoint that was ever scored is there."""
        self._best_on_disk.labels(_set_label(eval_set)).set(int(on_disk))


def _show_metrics(gauge: Gauge, name: str, metrics: Mapping[CocoMetric, float | None]) -> None:
    """Sets the metrics that there are and takes the others away."""
    for metric in get_args(CocoMetric):
        value = metrics.get(metric)
        if value is not None and value >= 0:
            gauge.labels(name, metric).set(value)
        else:
            gauge.remove(name, metric)


def _set_label(eval_set: str) -> str:
    """Prometheus takes an empty label for none; ``eval`` is the unnamed set's folder, too."""
    return eval_set or "eval"
