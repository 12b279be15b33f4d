"""What a trainer exports; `tandem.telemetry.catalogue` defines the metrics."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import get_args

from prometheus_client import CollectorRegistry, Gauge

from tandem.telemetry.catalogue import TRAINER
from tandem.telemetry.definitions import Made, choose
from tandem.telemetry.labels import (
    BadputCause,
    LossPart,
    PreemptionReason,
    RunState,
    SaveOutcome,
    SavePhase,
    TrainPhase,
)

_STATES: dict[TrainPhase, RunState] = {
    "starting": "starting",
    "restoring": "starting",
    "training": "running",
    "saving": "running",
    "finished": "finished",
    "failed": "failed",
    "preempted": "preempted",
    "stopped": "stopped",
}


class TrainerMetrics:
    """What a trainer exports."""

    def __init__(
        self,
        registry: CollectorRegistry,
        *,
        began: float | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """Makes all metrics.

        Args:
            registry: they are registered in.
            began: when the process did, by ``monotonic``; None: now.
            monotonic: seconds.
            wall_clock: seconds since 1970.
        """
        self._wall_clock = wall_clock
        began = monotonic() if began is None else began
        made = Made(registry, TRAINER)
        self._step = made.gauge("tandem_train_step")
        self._target = made.gauge("tandem_train_target_step")
        self._attempt = made.gauge("tandem_train_attempt")
        self._loss = made.gauge("tandem_train_loss")
        self._learning_rate = made.gauge("tandem_train_learning_rate")
        self._rate = made.gauge("tandem_train_steps_per_second")
        self._eta = made.gauge("tandem_train_eta_seconds")
        self._last_step_time = made.gauge("tandem_train_last_step_timestamp_seconds")
        self._stall_budget = made.gauge("tandem_train_stall_budget_seconds")
        self._step_seconds = made.histogram("tandem_train_step_seconds")
        self._data_seconds = made.counter("tandem_train_data_seconds_total")
        self._images = made.counter("tandem_train_images_total")
        self._phase = made.gauge("tandem_train_phase")
        self._state = made.gauge("tandem_run_state")
        self._commit_step = made.gauge("tandem_ckpt_last_commit_step")
        self._commit_time = made.gauge("tandem_ckpt_last_commit_timestamp_seconds")
        self._save_interval = made.gauge("tandem_ckpt_interval_target_seconds")
        self._save_phase_seconds = made.histogram("tandem_ckpt_phase_seconds")
        self._save_seconds = made.histogram("tandem_ckpt_save_seconds")
        self._saves = made.counter("tandem_ckpt_saves_total")
        self._stall_seconds = made.histogram("tandem_ckpt_stall_seconds")
        self._pending = made.gauge("tandem_ckpt_pending_saves")
        self._preemptions = made.counter("tandem_preemptions_total")
        self._lost_steps = made.counter("tandem_lost_steps_total")
        badput = made.counter("tandem_badput_seconds_total")
        # To look a child up takes longer than all else that is done here after a step.
        self._badput = {cause: badput.labels(cause) for cause in get_args(BadputCause)}
        self._losses: dict[LossPart, Gauge] = {}
        made.running_counter("tandem_wall_seconds_total", lambda: monotonic() - began)
        self.set_phase("starting")

    def begin(self, *, attempt: int, step: int, target_step: int | None) -> None:
        """Says where this attempt starts; ``target_step`` None trains until stopped."""
        self._attempt.set(attempt)
        self._step.set(step)
        self._target.set(_or_nan(target_step))

    def restore_past(self, *, endings: Sequence[PreemptionReason], lost_steps: int) -> None:
        """Shows what the run folder says of the attempts before.

        Args:
            endings: how each of them ended that did not finish.
            lost_steps: that they trained and that were, or are to be, trained again.
        """
        for ending in endings:
            self._preemptions.labels(ending).inc()
        self._lost_steps.inc(lost_steps)

    def restore_commit(self, step: int, *, committed_at: float) -> None:
        """Shows the newest checkpoint of the attempts before, committed in seconds since 1970."""
        self._commit_step.set(step)
        self._commit_time.set(committed_at)

    def set_phase(self, phase: TrainPhase) -> None:
        """Says what the trainer is doing from now on, and so which state the run is in."""
        choose(self._phase, phase, get_args(TrainPhase))
        choose(self._state, _STATES[phase], get_args(RunState))

    def record_step(
        self,
        step: int,
        *,
        losses: Mapping[LossPart, float],
        learning_rate: float,
        num_images: int,
        seconds: float,
        data_seconds: float,
    ) -> None:
        """Counts one finished step of ``num_images`` images.

        It took ``seconds``, of which it waited for data for ``data_seconds``.
        """
        self._step.set(step)
        for part, value in losses.items():
            if part not in self._losses:
                self._losses[part] = self._loss.labels(part)
            self._losses[part].set(value)
        self._learning_rate.set(learning_rate)
        self._images.inc(num_images)
        self._step_seconds.observe(seconds)
        self._data_seconds.inc(data_seconds)
        self._last_step_time.set(self._wall_clock())

    def record_rate(
        self,
        steps_per_second: float,
        *,
        eta_seconds: float | None,
        stall_budget_seconds: float | None,
        save_interval_seconds: float | None,
    ) -> None:
        """Says how fast training goes, and what follows from it.

        Args:
            steps_per_second: of late.
            eta_seconds: until the last step; None when there is none, as of what isn't known.
            stall_budget_seconds: a step that takes longer is a stall.
            save_interval_seconds: between two checkpoints.
        """
        self._rate.set(steps_per_second)
        self._eta.set(_or_nan(eta_seconds))
        self._stall_budget.set(_or_nan(stall_budget_seconds))
        self._save_interval.set(_or_nan(save_interval_seconds))

    def count_badput(self, cause: BadputCause, seconds: float) -> None:
        """Counts time that was not spent on new steps."""
        self._badput[cause].inc(max(0.0, seconds))

    def record_save(self, step: int, *, outcome: SaveOutcome, seconds: float) -> None:
        """Counts one try to save the checkpoint of ``step``."""
        self._saves.labels(outcome).inc()
        self._save_seconds.observe(seconds)
        if outcome == "ok":
            self._commit_step.set(step)
            self._commit_time.set(self._wall_clock())

    def record_save_phase(self, phase: SavePhase, seconds: float) -> None:
        """Counts one part of a save."""
        self._save_phase_seconds.labels(phase).observe(seconds)

    def record_stall(self, seconds: float) -> None:
        """Counts one save by what it cost the step loop."""
        self._stall_seconds.observe(seconds)
        self.count_badput("saving", seconds)

    def watch_pending(self, num_pending: Callable[[], int]) -> None:
        """Shows the saves that are not done, as they are whenever someone looks."""
        self._pending.set_function(num_pending)


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value
