"""Is this run all right? The answers as they are now."""

from __future__ import annotations

from deploy.dashboards import verdicts
from deploy.dashboards.panels import Meaning, Panel, Query, stat
from deploy.dashboards.selections import RUN, SETS, ago, most, one, share_of_budget, waits
from deploy.dashboards.tables import table

_OVER_BUDGET = [(0.75, "orange"), (1.0, "red")]
_SILENT = [(120, "orange"), (300, "red")]


def answers() -> list[Panel]:
    """A line of values; the verdict first."""
    return [
        stat(
            "Verdict",
            f"The first of these that holds:\n{verdicts.explained()}\n\n"
            "Purple is not healthy: ask `tandem status`. The alerts wait longer than this panel.",
            Query(verdicts.verdict_of(RUN), "verdict", meanings=verdicts.MEANINGS),
            width=4,
            filled=True,
        ),
        stat(
            "Progress",
            "How much of the training is done, and how long the rest takes at the speed of late.",
            Query(
                f"{most('tandem_train_step')} / {most('tandem_train_target_step')}",
                "done",
                unit="percentunit",
                decimals=1,
            ),
            Query(most("tandem_train_step"), "step", unit="locale", decimals=0),
            Query(most("tandem_train_eta_seconds"), "time left", unit="s", decimals=1),
            width=4,
        ),
        stat(
            "Newest checkpoint",
            "What a kill would cost: all since the newest commit. Its budget is three intervals "
            "between saves, by the run's own settings and pace; beyond it TandemCheckpointStale "
            "pages.",
            Query(
                ago(most("tandem_ckpt_last_commit_timestamp_seconds")), "age", unit="s", decimals=1
            ),
            Query(
                f"({ago(most('tandem_ckpt_last_commit_timestamp_seconds'))})"
                f" / (3 * {most('tandem_ckpt_interval_target_seconds')})",
                "of its budget",
                unit="percentunit",
                limits=_OVER_BUDGET,
                decimals=0,
            ),
            Query(most("tandem_ckpt_last_commit_step"), "step", unit="locale", decimals=0),
            width=4,
        ),
        stat(
            "Evaluation lag",
            "Checkpoints that wait for evaluation, and for how long the oldest one has. Its budget "
            "is the evaluator's --lag-budget; beyond it TandemEvalLagHigh pages.",
            Query(most("tandem_eval_backlog"), "waiting", decimals=0),
            Query(waits(), "the oldest for", unit="s", decimals=1),
            Query(
                share_of_budget(),
                "of its budget",
                unit="percentunit",
                limits=_OVER_BUDGET,
                decimals=0,
            ),
            width=4,
        ),
        stat(
            "Last sign of life",
            "Time since the trainer's last step and since the evaluator's loop last came by. A "
            "process that hangs still answers scrapes, but these grow. The trainer takes no steps "
            "while it restores, and none once it has finished.",
            Query(
                ago(most("tandem_train_last_step_timestamp_seconds")),
                "trainer",
                unit="s",
                limits=_SILENT,
                decimals=1,
            ),
            Query(
                ago(most("tandem_eval_heartbeat_timestamp_seconds")),
                "evaluator",
                unit="s",
                limits=_SILENT,
                decimals=1,
            ),
            width=3,
        ),
        _scores(),
    ]


def _scores() -> Panel:
    on_disk = {0: Meaning("gone", "red"), 1: Meaning("kept", "green")}

    def of(name: str, **labels: str) -> str:
        return f"max by (eval_set) ({one(name, eval_set=SETS, **labels)})"

    return table(
        "AP now and best",
        "AP of the newest evaluated checkpoint, the best so far, its step, and whether the best "
        "checkpoint is still kept.",
        Query(of("tandem_eval_metric", metric="AP"), "now", decimals=3),
        Query(of("tandem_eval_best_metric", metric="AP"), "best", decimals=3),
        Query(of("tandem_eval_best_step"), "at step", unit="locale", decimals=0),
        Query(of("tandem_eval_best_on_disk"), "best is", meanings=on_disk),
        keys={"eval_set": "eval set"},
        width=5,
        height=5,
    )
