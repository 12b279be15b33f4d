"""One word on each run, from its metrics: what both dashboards show first.

`VERDICTS` are in the order in which they are asked; a run gets the first one that holds. Each
expression has the labels `namespace` and `run` alone, and RUN in place of the selection of runs.
The alerts ask the same questions with more patience; `tandem status` answers them without
Prometheus.
"""

from __future__ import annotations

from typing import NamedTuple

from deploy.dashboards.panels import Meaning
from deploy.dashboards.selections import series

_BROKEN, _UNKNOWN, _DEGRADED, _FINE, _OVER = "red", "purple", "orange", "green", "blue"


class Verdict(NamedTuple):
    """One answer.

    Attributes:
        text: as people see it.
        colour: red is broken, purple unknown, orange degraded, green fine, blue over or not begun.
        means: for the panel's description.
        expr: PromQL that has a value for the runs that it holds for.
    """

    text: str
    colour: str
    means: str
    expr: str


def _most(name: str, /, **labels: str) -> str:
    return f"max by (namespace, run) ({series(name, 'RUN', **labels)})"


def _seen(name: str, /, *, within: str = "$__range", **labels: str) -> str:
    """The last values of series that may be gone by now."""
    return f"last_over_time({series(name, 'RUN', **labels)}[{within}])"


def _rise(name: str, /, *, within: str, **labels: str) -> str:
    return f"sum by (namespace, run) (increase({series(name, 'RUN', **labels)}[{within}]))"


_TRAINS = _most("tandem_run_state", state="running") + " == 1"
_TRAINS_FOR_15M = (
    "max by (namespace, run) (count_over_time("
    '(tandem_run_state{RUN, state="running"} == 1)[15m:30s])) >= 27'
)
_LAST_STEP = _most("tandem_train_last_step_timestamp_seconds")
_COMMIT = _most("tandem_ckpt_last_commit_timestamp_seconds")
_BUDGET = f"3 * {_most('tandem_ckpt_interval_target_seconds')}"
_BEAT = f"max by (namespace, run) ({_seen('tandem_eval_heartbeat_timestamp_seconds', within='6h')})"
_PENDING = _most("tandem_ckpt_oldest_pending_timestamp_seconds")
_EVALUATED = f"min by (namespace, run) ({_seen('tandem_eval_last_completed_step')})"
_NEWEST = f"max by (namespace, run) ({_seen('tandem_eval_newest_checkpoint_step')})"
_FINISHED = f"max by (namespace, run) ({_seen('tandem_eval_run_outcome', outcome='finished')}) == 1"

VERDICTS = (
    Verdict(
        "Training failed",
        _BROKEN,
        "the trainer ended with an error that another start would meet again",
        f"{_most('tandem_run_state', state='failed')} == 1"
        f" or {_most('tandem_eval_run_outcome', outcome='failed')} == 1",
    ),
    Verdict(
        "Two trainers",
        _BROKEN,
        "two processes have trained it for 3 minutes",
        "min_over_time((count by (namespace, run)"
        ' (tandem_run_state{RUN, state="running"} == 1))[3m:30s]) > 1',
    ),
    Verdict(
        "Training stalled",
        _BROKEN,
        "no step for longer than its own stall budget, or none in 15 minutes of training",
        f"(time() - {_LAST_STEP} > {_most('tandem_train_stall_budget_seconds')} and {_TRAINS})"
        " or (max by (namespace, run) (changes(tandem_train_step{RUN}[15m])) == 0"
        f" and {_TRAINS_FOR_15M})",
    ),
    Verdict(
        "Storage refuses",
        _BROKEN,
        "the bucket has answered 401 or 403 in the last 10 minutes",
        f"{_rise('tandem_gcs_requests_total', outcome='refused', within='10m')} > 0",
    ),
    Verdict(
        "Saves fail",
        _BROKEN,
        "saves failed and none succeeded in 15 minutes",
        f"({_rise('tandem_ckpt_saves_total', outcome='error', within='15m')} > 0)"
        f" unless {_rise('tandem_ckpt_saves_total', outcome='ok', within='15m')} > 0",
    ),
    Verdict(
        "Checkpoint late",
        _BROKEN,
        "the newest commit is older than three intervals between saves",
        f"(time() - {_COMMIT} > {_BUDGET} and {_TRAINS})"
        f" or (({_most('tandem_wall_seconds_total')} > {_BUDGET} and {_TRAINS})"
        f" unless {_COMMIT} > 0)",
    ),
    Verdict(
        "Damaged checkpoint",
        _BROKEN,
        "a checkpoint did not match its checksums in the last hour",
        f"{_rise('tandem_ckpt_verify_failures_total', within='1h')} > 0",
    ),
    Verdict(
        "Evaluator silent",
        _BROKEN,
        "the evaluator's loop has shown no life for 5 minutes",
        f"(time() - {_BEAT} > 300)"
        f" and ({_TRAINS} or {_most('tandem_eval_phase', phase='done')} == 0)",
    ),
    Verdict(
        "Evaluation fails",
        _BROKEN,
        "three or more tries failed and none succeeded in the last hour",
        f"({_rise('tandem_eval_attempts_total', outcome='error', within='1h')} > 2.5)"
        f" unless {_rise('tandem_eval_attempts_total', outcome='ok', within='1h')} > 0",
    ),
    Verdict(
        "No trainer",
        _UNKNOWN,
        "the run is not over, but no trainer is scraped: pending, between two attempts, or dead",
        f"({_most('tandem_eval_run_outcome', outcome='running')} == 1)"
        f" unless {_most('tandem_run_state')} >= 0",
    ),
    Verdict(
        "Evaluation late",
        _DEGRADED,
        "the oldest checkpoint that waits has waited longer than the evaluator's lag budget",
        f"time() - ({_PENDING} > 0) > {_most('tandem_eval_lag_budget_seconds')}",
    ),
    Verdict(
        "Storage errors",
        _DEGRADED,
        "more than 2 % of the requests to the bucket failed in the last 10 minutes",
        f"{_rise('tandem_gcs_requests_total', outcome='~refused|error', within='10m')}"
        f" / {_rise('tandem_gcs_requests_total', within='10m')} > 0.02",
    ),
    Verdict(
        "Often preempted",
        _DEGRADED,
        "three or more new attempts in an hour",
        f"{_most('tandem_train_attempt')} - min by (namespace, run)"
        " (min_over_time(tandem_train_attempt{RUN}[1h])) >= 3",
    ),
    Verdict(
        "AP fell",
        _DEGRADED,
        "for half an hour, AP on some eval set has been more than 0.05 below the best",
        "max by (namespace, run) (max by (namespace, run, eval_set)"
        ' (tandem_eval_best_metric{RUN, metric="AP"}) - max by (namespace, run, eval_set)'
        ' (max_over_time(tandem_eval_metric{RUN, metric="AP"}[30m]))) > 0.05',
    ),
    Verdict(
        "Preempted",
        _DEGRADED,
        "the trainer was asked to stop and has saved; its next attempt goes on",
        f"{_most('tandem_run_state', state='~preempted|stopped')} == 1"
        f" or {_most('tandem_eval_run_outcome', outcome='preempted')} == 1",
    ),
    Verdict("Healthy", _FINE, "it trains, and none of the above", _TRAINS),
    Verdict(
        "Starting",
        _OVER,
        "the trainer starts or restores",
        f"{_most('tandem_run_state', state='starting')} == 1",
    ),
    Verdict(
        "Finished",
        _OVER,
        "training has ended and its last checkpoint is evaluated",
        f"({_FINISHED}) and ({_EVALUATED} >= {_NEWEST})",
    ),
    Verdict(
        "Last evaluations",
        _OVER,
        "training has ended, its last checkpoints are being evaluated",
        f"{_most('tandem_eval_run_outcome', outcome='finished')} == 1",
    ),
    Verdict(
        "Not scraped",
        _UNKNOWN,
        "it had metrics in this time range and has none now; `tandem status` tells",
        f"group by (namespace, run) ({_seen('tandem_build_info')})",
    ),
)

_SEVERITIES = (_OVER, _FINE, _DEGRADED, _UNKNOWN, _BROKEN)
_BY_BADNESS = sorted(
    VERDICTS,
    key=lambda verdict: (_SEVERITIES.index(verdict.colour), -VERDICTS.index(verdict)),
)

MEANINGS = {
    number: Meaning(verdict.text, verdict.colour)
    for number, verdict in enumerate(_BY_BADNESS, start=1)
}
"""What the numbers of `verdict_of` stand for: the higher, the worse."""


def verdict_of(selection: str) -> str:
    """One number for each of the selected runs; no value for a run that has never been scraped."""
    numbers = {meaning.text: number for number, meaning in MEANINGS.items()}
    terms = [
        f"{numbers[verdict.text]} * group by (namespace, run) ({verdict.expr})"
        for verdict in VERDICTS
    ]
    return "\nor ".join(terms).replace("RUN", selection)


def explained() -> str:
    """All verdicts in words, for a panel's description."""
    return "\n".join(f"- **{verdict.text}**: {verdict.means}." for verdict in VERDICTS)
