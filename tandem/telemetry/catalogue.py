"""All Prometheus metrics: the one place that defines them. `docs/metrics.md` is made from it.

Labels are bounded: states, phases, outcomes, parts of the loss, the config's eval sets and the
twelve COCO metrics; never a step, a path or a digest. Namespace, run and pod come with the scrape.
What a dashboard needs of checkpoints and evaluations is read from the run folder at the start, so
a pod that is started again shows no gap.
"""

from __future__ import annotations

from typing import get_args

from tandem.telemetry import labels
from tandem.telemetry.definitions import Definition, Label

_STEP_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_SAVE_BUCKETS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
_PART_BUCKETS = (0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_STALL_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_EVAL_BUCKETS = (1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)
_EVAL_PHASE_BUCKETS = (0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)
_STORE_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)

_TIMESTAMP = "seconds since 1970"
_EVAL_SET = Label("eval_set", what="eval sets of the config; `eval` for an unnamed one")
_METRIC = Label("metric", get_args(labels.CocoMetric))
_OPERATION = Label("op", get_args(labels.StoreOperation))


def _gauge(name: str, unit: str, help: str, use: str, *more: Label) -> Definition:
    return Definition(name, "gauge", unit, help, use, more)


def _counter(name: str, unit: str, help: str, use: str, *more: Label) -> Definition:
    return Definition(name, "counter", unit, help, use, more)


def _histogram(
    name: str, help: str, use: str, *more: Label, buckets: tuple[float, ...]
) -> Definition:
    return Definition(name, "histogram", "seconds", help, use, more, buckets)


TRAINER = (
    _gauge("tandem_train_step", "steps", "Newest finished step.", "Does training advance?"),
    _gauge(
        "tandem_train_target_step",
        "steps",
        "Step that training ends at; NaN: none.",
        "Progress, and whether the last evaluation is still owed.",
    ),
    _gauge(
        "tandem_train_attempt",
        "number",
        "Number of this attempt at the run.",
        "Restarts; two pods with different numbers are two trainers.",
    ),
    _gauge(
        "tandem_train_loss",
        "loss",
        "Loss of the newest finished step.",
        "The loss curves.",
        Label("part", get_args(labels.LossPart)),
    ),
    _gauge(
        "tandem_train_learning_rate",
        "per step",
        "Learning rate of the newest step.",
        "Whether the schedule is the one that was meant.",
    ),
    _gauge(
        "tandem_train_steps_per_second",
        "steps per second",
        "Training speed of late, by the median of fifty steps.",
        "Speed against what it was.",
    ),
    _gauge(
        "tandem_train_eta_seconds",
        "seconds",
        "Training time left at the speed of late; NaN without an end.",
        "When it will be done.",
    ),
    _gauge(
        "tandem_train_last_step_timestamp_seconds",
        _TIMESTAMP,
        "When the newest step finished.",
        "A trainer that hangs, though its pod answers; one whose clock is wrong.",
    ),
    _gauge(
        "tandem_train_stall_budget_seconds",
        "seconds",
        "A step that takes longer is a stall: 20 median steps, at least 300 s; NaN before the "
        "second step.",
        "The threshold of TandemTrainStalled, by the run's own pace.",
    ),
    _histogram(
        "tandem_train_step_seconds",
        "Time of one step, waiting for its data included.",
        "Whether some steps are much slower than others.",
        buckets=_STEP_BUCKETS,
    ),
    _counter(
        "tandem_train_data_seconds_total",
        "seconds",
        "Time that steps waited for their data.",
        "Whether input holds training up.",
    ),
    _counter("tandem_train_images_total", "images", "Images trained on.", "Throughput in images."),
    _gauge(
        "tandem_train_phase",
        "0 or 1",
        "1 for what the trainer is doing.",
        "The timeline of phases.",
        Label("phase", get_args(labels.TrainPhase)),
    ),
    _gauge(
        "tandem_run_state",
        "0 or 1",
        "1 for the state that the run is in.",
        "Alerts about progress hold only while it is running.",
        Label("state", get_args(labels.RunState)),
    ),
    _gauge(
        "tandem_ckpt_last_commit_step",
        "steps",
        "Step of the newest committed checkpoint.",
        "What a restart would go on from.",
    ),
    _gauge(
        "tandem_ckpt_last_commit_timestamp_seconds",
        _TIMESTAMP,
        "When the newest checkpoint was committed.",
        "How much training a kill would cost now.",
    ),
    _gauge(
        "tandem_ckpt_interval_target_seconds",
        "seconds",
        "Time between two checkpoints at the settings and the pace of late; NaN before the second "
        "step.",
        "The threshold of TandemCheckpointStale.",
    ),
    _histogram(
        "tandem_ckpt_phase_seconds",
        "Time of one part of a save; upload includes the check by the store's own checksum.",
        "Which part makes saving slow.",
        Label("phase", get_args(labels.SavePhase)),
        buckets=_PART_BUCKETS,
    ),
    _histogram(
        "tandem_ckpt_save_seconds",
        "Time from the snapshot of the weights to the commit.",
        "How long a checkpoint takes to be safe.",
        buckets=_SAVE_BUCKETS,
    ),
    _counter(
        "tandem_ckpt_saves_total",
        "saves",
        "Saves by how they ended.",
        "TandemSaveFailed.",
        Label("outcome", get_args(labels.SaveOutcome)),
    ),
    _histogram(
        "tandem_ckpt_stall_seconds",
        "Time that the step loop stood still for a save: for a free place and the host copy.",
        "What saving costs training.",
        buckets=_STALL_BUCKETS,
    ),
    _gauge(
        "tandem_ckpt_pending_saves",
        "saves",
        "Saves under way (1), and one more that waits (2).",
        "A store that is too slow for the checkpoints asked for.",
    ),
    _counter(
        "tandem_preemptions_total",
        "attempts",
        "Attempts before this one by how they ended: asked to stop, killed, or failed.",
        "TandemPreemptionStorm. Begins at the run's number, so use its difference over time.",
        Label("reason", get_args(labels.PreemptionReason)),
    ),
    _counter(
        "tandem_lost_steps_total",
        "steps",
        "Steps that were trained after the checkpoint that the next attempt went on from.",
        "What restarts have cost. Begins at the run's number, so use its difference over time.",
    ),
    _counter(
        "tandem_badput_seconds_total",
        "seconds",
        "Time that this process did not spend on new steps, by cause: up to the end of the first "
        "step, standing still for saves, waiting for data, training lost steps again.",
        "TandemGoodputLow: its share of the wall time.",
        Label("cause", get_args(labels.BadputCause)),
    ),
    _counter(
        "tandem_wall_seconds_total",
        "seconds",
        "Time since this process began.",
        "What badput is a share of.",
    ),
)

EVALUATOR = (
    _gauge(
        "tandem_eval_phase",
        "0 or 1",
        "1 for what the evaluator is doing.",
        "The timeline of phases.",
        Label("phase", get_args(labels.EvalPhase)),
    ),
    _histogram(
        "tandem_eval_phase_seconds",
        "Time of one stay in a phase.",
        "Which part makes evaluation slow.",
        Label("phase", get_args(labels.TimedEvalPhase)),
        buckets=_EVAL_PHASE_BUCKETS,
    ),
    _gauge(
        "tandem_eval_heartbeat_timestamp_seconds",
        _TIMESTAMP,
        "When the evaluator's loop last came by.",
        "TandemEvaluatorSilent: the pod answers although its loop hangs.",
    ),
    _gauge(
        "tandem_eval_images_done",
        "images",
        "Images scored in the evaluation under way.",
        "TandemEvalStuck: it must grow while the phase is running.",
    ),
    _gauge(
        "tandem_eval_images_expected",
        "images",
        "Images of the eval set under way.",
        "How far the evaluation under way is.",
    ),
    _counter(
        "tandem_eval_images_scored_total",
        "images",
        "Images of evaluations that were recorded.",
        "Throughput.",
        _EVAL_SET,
    ),
    _counter(
        "tandem_eval_bad_records_total",
        "records",
        "Records that could not be read.",
        "Damaged input, before somebody wonders at the numbers.",
        _EVAL_SET,
    ),
    _counter(
        "tandem_eval_attempts_total",
        "evaluations",
        "Evaluations by how they ended; skipped is a checkpoint found damaged before.",
        "TandemEvalFailingSameCheckpoint.",
        _EVAL_SET,
        Label("outcome", get_args(labels.EvalOutcome)),
    ),
    _histogram(
        "tandem_eval_seconds",
        "Time of one evaluation, from the restore to the ledger.",
        "Whether it keeps up with the checkpoints.",
        _EVAL_SET,
        buckets=_EVAL_BUCKETS,
    ),
    _gauge(
        "tandem_eval_backlog",
        "checkpoints",
        "Committed checkpoints that wait for evaluation.",
        "How far behind.",
    ),
    _gauge(
        "tandem_ckpt_oldest_pending_timestamp_seconds",
        _TIMESTAMP,
        "When the oldest checkpoint that waits for evaluation was committed; 0: none waits.",
        "TandemEvalLagHigh: its age against the budget.",
    ),
    _gauge(
        "tandem_eval_lag_budget_seconds",
        "seconds",
        "How long a checkpoint may wait for its evaluation (--lag-budget).",
        "The threshold of TandemEvalLagHigh.",
    ),
    _gauge(
        "tandem_eval_lease_held",
        "0 or 1",
        "1 while the evaluator holds a checkpoint.",
        "Whether it works at all; a checkpoint that is held stays on disk.",
    ),
    _gauge(
        "tandem_eval_newest_checkpoint_step",
        "steps",
        "Step of the newest checkpoint seen.",
        "What the last completed step is compared with, also when the trainer is gone.",
    ),
    _gauge(
        "tandem_eval_newest_checkpoint_age_seconds",
        "seconds",
        "Time since the newest checkpoint was first seen by this process.",
        "Whether new ones still come.",
    ),
    _gauge(
        "tandem_eval_run_outcome",
        "0 or 1",
        "1 for the run's outcome as the run folder has it; all 0 before the first attempt.",
        "TandemRunEndedWithoutFinalEval: a trainer that has ended is scraped no more.",
        Label("outcome", get_args(labels.RunOutcome)),
    ),
    _gauge(
        "tandem_eval_metric",
        "0 to 1",
        "COCO metric of the newest scored checkpoint; absent without ground truth.",
        "The AP curves.",
        _EVAL_SET,
        _METRIC,
    ),
    _gauge(
        "tandem_eval_best_metric",
        "0 to 1",
        "COCO metric of the best checkpoint so far.",
        "TandemMetricRegression: what the newest is compared with.",
        _EVAL_SET,
        _METRIC,
    ),
    _gauge(
        "tandem_eval_best_step",
        "steps",
        "Step of the best checkpoint so far.",
        "Which checkpoint to take away.",
        _EVAL_SET,
    ),
    _gauge(
        "tandem_eval_best_on_disk",
        "0 or 1",
        "1 while the best checkpoint that was ever scored is there; 0: a lesser one is the best.",
        "Whether retention, or somebody, removed what the run was for.",
        _EVAL_SET,
    ),
    _gauge(
        "tandem_eval_last_completed_step",
        "steps",
        "Step of the newest scored checkpoint.",
        "Which checkpoint the metrics are of.",
        _EVAL_SET,
    ),
    _gauge(
        "tandem_eval_last_completed_timestamp_seconds",
        _TIMESTAMP,
        "When the newest scored checkpoint was scored.",
        "How fresh the metrics are.",
        _EVAL_SET,
    ),
    _gauge(
        "tandem_eval_unreadable_entries",
        "entries",
        "Ledger entries that can't be read.",
        "TandemCheckpointCorrupt: numbers that are lost.",
    ),
)

BOTH = (
    _counter(
        "tandem_ckpt_verify_failures_total",
        "checkpoints",
        "Checkpoints whose bytes this process found damaged.",
        "TandemCheckpointCorrupt.",
    ),
    _gauge(
        "tandem_build_info",
        "1",
        "1, with the software that runs.",
        "TandemImagesDiffer, and what changed when.",
        Label("version", what="of Tandem"),
        Label("image", what="of the container; outside of one, Tandem's and TensorFlow's versions"),
    ),
)

STORE = (
    _counter(
        "tandem_gcs_requests_total",
        "requests",
        "Requests to the bucket by operation and outcome, each repetition counted.",
        "TandemGcsErrorFastBurn and TandemGcsErrorSlowBurn: the share of refused (no credentials, "
        "no permission, no bucket) and error. The outcomes precondition and missing are answers.",
        _OPERATION,
        Label("outcome", get_args(labels.StoreOutcome)),
    ),
    _histogram(
        "tandem_gcs_seconds",
        "Time of one request to the bucket; of an upload, the whole session.",
        "Whether the store is slow. Uploads and downloads take as long as they are large.",
        _OPERATION,
        buckets=_STORE_BUCKETS,
    ),
)

ALL = (*TRAINER, *EVALUATOR, *BOTH, *STORE)
