"""All Prometheus metrics, of both processes.

Names are ``tandem_<thing>_<unit>[_total]``. Labels are bounded: states, phases, outcomes, parts of
the loss, the config's eval sets and the twelve COCO metrics; never a step, a path or a digest.
What isn't known yet is NaN or absent, never a 0 or -1 that a chart would draw.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Literal, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

LossPart = Literal["localization", "classification", "regularization", "total"]
RunState = Literal["starting", "running", "finished", "failed", "preempted", "stopped"]
TrainPhase = Literal[
    "starting", "restoring", "training", "saving", "finished", "failed", "preempted", "stopped"
]
EvalPhase = Literal[
    "starting", "waiting", "restoring", "running", "publishing", "backing_off", "done"
]
SaveOutcome = Literal["ok", "error"]
EvalOutcome = Literal["ok", "error", "skipped"]
CocoMetric = Literal[
    "AP", "AP50", "AP75", "APs", "APm", "APl", "AR1", "AR10", "AR100", "ARs", "ARm", "ARl"
]

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
_STEP_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_SAVE_BUCKETS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
_STALL_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_EVAL_BUCKETS = (1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)


class TrainerMetrics:
    """What a trainer exports."""

    def __init__(
        self, registry: CollectorRegistry, *, wall_clock: Callable[[], float] = time.time
    ) -> None:
        self._wall_clock = wall_clock

        def gauge(name: str, help_text: str, *labels: str) -> Gauge:
            return _gauge(registry, name, help_text, *labels)

        self._step = gauge("tandem_train_step", "Newest finished step.")
        self._target = gauge("tandem_train_target_step", "Step that training ends at; NaN: none.")
        self._attempt = gauge("tandem_train_attempt", "Number of this attempt at the run.")
        self._loss = gauge("tandem_train_loss", "Loss of the newest finished step.", "part")
        self._learning_rate = gauge(
            "tandem_train_learning_rate", "Learning rate of the newest step."
        )
        self._rate = gauge("tandem_train_steps_per_second", "Training speed of late.")
        self._eta = gauge("tandem_train_eta_seconds", "Training time left at the speed of late.")
        self._last_step_time = gauge(
            "tandem_train_last_step_timestamp_seconds", "When the newest step finished."
        )
        self._state = gauge("tandem_run_state", "1 for the state that the run is in.", "state")
        self._phase = gauge("tandem_train_phase", "1 for what the trainer is doing.", "phase")
        self._commit_step = gauge(
            "tandem_ckpt_last_commit_step", "Step of the newest committed checkpoint."
        )
        self._commit_time = gauge(
            "tandem_ckpt_last_commit_timestamp_seconds", "When the newest checkpoint was committed."
        )
        self._images = Counter("tandem_train_images_total", "Images trained on.", registry=registry)
        self._step_seconds = Histogram(
            "tandem_train_step_seconds",
            "Time of one step, waiting for its data included.",
            buckets=_STEP_BUCKETS,
            registry=registry,
        )
        self._saves = Counter(
            "tandem_ckpt_saves_total", "Saves by how they ended.", ["outcome"], registry=registry
        )
        for outcome in get_args(SaveOutcome):
            self._saves.labels(outcome)  # so that a first error is an increase, from 0
        self._save_seconds = Histogram(
            "tandem_ckpt_save_seconds",
            "Time from the snapshot of the weights to the commit.",
            buckets=_SAVE_BUCKETS,
            registry=registry,
        )
        self._stall_seconds = Histogram(
            "tandem_ckpt_stall_seconds",
            "Time that the step loop stood still for a save: for a free place and the host copy.",
            buckets=_STALL_BUCKETS,
            registry=registry,
        )
        self._pending = gauge(
            "tandem_ckpt_pending_saves", "Saves under way (1), and one more that waits (2)."
        )
        self.set_phase("starting")

    def begin(self, *, attempt: int, step: int, target_step: int | None) -> None:
        """Says where this attempt starts; ``target_step`` None trains until stopped."""
        self._attempt.set(attempt)
        self._step.set(step)
        self._target.set(math.nan if target_step is None else target_step)

    def set_phase(self, phase: TrainPhase) -> None:
        """Says what the trainer is doing from now on, and so which state the run is in."""
        _choose(self._phase, phase, get_args(TrainPhase))
        _choose(self._state, _STATES[phase], get_args(RunState))

    def record_step(
        self,
        step: int,
        *,
        losses: Mapping[LossPart, float],
        learning_rate: float,
        num_images: int,
        seconds: float,
    ) -> None:
        """Counts one finished step of ``num_images`` images, which took ``seconds``."""
        self._step.set(step)
        for part, value in losses.items():
            self._loss.labels(part).set(value)
        self._learning_rate.set(learning_rate)
        self._images.inc(num_images)
        self._step_seconds.observe(seconds)
        self._last_step_time.set(self._wall_clock())

    def record_rate(self, steps_per_second: float, *, eta_seconds: float | None) -> None:
        """Says how fast training goes; ``eta_seconds`` None when it has no end."""
        self._rate.set(steps_per_second)
        self._eta.set(math.nan if eta_seconds is None else eta_seconds)

    def record_save(self, step: int, *, outcome: SaveOutcome, seconds: float) -> None:
        """Counts one try to save the checkpoint of ``step``."""
        self._saves.labels(outcome).inc()
        self._save_seconds.observe(seconds)
        if outcome == "ok":
            self._commit_step.set(step)
            self._commit_time.set(self._wall_clock())

    def record_stall(self, seconds: float) -> None:
        """Counts one save by what it cost the step loop."""
        self._stall_seconds.observe(seconds)

    def watch_pending(self, num_pending: Callable[[], int]) -> None:
        """Shows the saves that are not done, as they are whenever someone looks."""
        self._pending.set_function(num_pending)


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

        def gauge(name: str, help_text: str, *labels: str) -> Gauge:
            return _gauge(registry, name, help_text, *labels)

        self._metric = gauge(
            "tandem_eval_metric",
            "COCO metric of the newest scored checkpoint; absent without ground truth.",
            *("eval_set", "metric"),
        )
        self._best_metric = gauge(
            "tandem_eval_best_metric",
            "COCO metric of the best checkpoint so far.",
            "eval_set",
            "metric",
        )
        self._best_step = gauge(
            "tandem_eval_best_step", "Step of the best checkpoint so far.", "eval_set"
        )
        self._last_step = gauge(
            "tandem_eval_last_completed_step", "Step of the newest scored checkpoint.", "eval_set"
        )
        self._last_time = gauge(
            "tandem_eval_last_completed_timestamp_seconds",
            "When the newest scored checkpoint was scored.",
            "eval_set",
        )
        self._backlog = gauge(
            "tandem_eval_backlog", "Committed checkpoints that wait for evaluation."
        )
        self._newest_step = gauge(
            "tandem_eval_newest_checkpoint_step", "Step of the newest checkpoint seen."
        )
        self._newest_age = gauge(
            "tandem_eval_newest_checkpoint_age_seconds",
            "Time since the newest checkpoint was first seen by this process.",
        )
        self._newest_age.set_function(lambda: self._monotonic() - self._seen_at)
        self._phase = gauge("tandem_eval_phase", "1 for what the evaluator is doing.", "phase")
        self._heartbeat = gauge(
            "tandem_eval_heartbeat_timestamp_seconds", "When the evaluator's loop last came by."
        )
        self._images_done = gauge(
            "tandem_eval_images_done", "Images scored in the evaluation under way."
        )
        self._images_expected = gauge(
            "tandem_eval_images_expected", "Images of the eval set under way."
        )
        self._images_scored = Counter(
            "tandem_eval_images_scored_total",
            "Images scored, by eval set.",
            ["eval_set"],
            registry=registry,
        )
        self._attempts = Counter(
            "tandem_eval_attempts_total",
            "Evaluations by how they ended.",
            ["eval_set", "outcome"],
            registry=registry,
        )
        self._seconds = Histogram(
            "tandem_eval_seconds",
            "Time of one evaluation, from the restore to the ledger.",
            ["eval_set"],
            buckets=_EVAL_BUCKETS,
            registry=registry,
        )
        self.set_phase("starting")

    def beat(self) -> None:
        """Shows that the loop itself lives: the metrics thread answers although the loop hangs."""
        self._heartbeat.set(self._wall_clock())

    def set_phase(self, phase: EvalPhase) -> None:
        """Says what the evaluator is doing from now on."""
        _choose(self._phase, phase, get_args(EvalPhase))
        self.beat()

    def record_listing(self, *, newest_step: int | None, backlog: int) -> None:
        """Says what the run folder holds; ``newest_step`` None when it has no checkpoint."""
        self._backlog.set(backlog)
        if newest_step is not None and newest_step != self._seen_step:
            self._seen_step, self._seen_at = newest_step, self._monotonic()
            self._newest_step.set(newest_step)
        self.beat()

    def record_images(self, done: int, *, expected: int) -> None:
        """Says how far the evaluation under way is."""
        self._images_done.set(done)
        self._images_expected.set(expected)
        self.beat()

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


def _gauge(registry: CollectorRegistry, name: str, help_text: str, *labels: str) -> Gauge:
    """A gauge; one without labels is NaN until it's set, one with labels is absent."""
    made = Gauge(name, help_text, labels, registry=registry)
    if not labels:
        made.set(math.nan)
    return made


def _choose(gauge: Gauge, chosen: str, states: tuple[str, ...]) -> None:
    """1 for the chosen state and 0 for the others, so that each has a line of its own."""
    for state in states:
        gauge.labels(state).set(1 if state == chosen else 0)


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
