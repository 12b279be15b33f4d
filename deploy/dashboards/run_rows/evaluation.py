"""Whether evaluation keeps up, and how its tries end."""

from __future__ import annotations

from deploy.dashboards.panels import Panel, Query, graph
from deploy.dashboards.selections import SETS, mean, most, one, rise, waits

_OUTCOMES = {"ok": "green", "error": "red", "skipped": "yellow"}


def evaluation() -> list[Panel]:
    """Whether evaluation keeps up, and how its tries end."""
    return [
        graph(
            "Checkpoints that wait",
            "Committed, but not yet evaluated on every set. A staircase that only climbs never "
            "catches up: more resources for the evaluator, or fewer saves.",
            Query(most("tandem_eval_backlog"), "waiting", "orange"),
            width=6,
            unit="none",
            steps=True,
        ),
        graph(
            "Lag against its budget",
            "For how long the oldest waiting checkpoint has waited.",
            Query(waits(), "lag", "orange"),
            Query(most("tandem_eval_lag_budget_seconds"), "budget", "red", dashed=True),
            width=6,
            unit="s",
        ),
        graph(
            "Images of the evaluation under way",
            "Scored so far, of those expected. A flat line below the dashed one while the "
            "evaluator is scoring is a stuck evaluation.",
            Query(most("tandem_eval_images_done"), "scored", "blue"),
            Query(most("tandem_eval_images_expected"), "of", "text", dashed=True),
            width=6,
            unit="locale",
        ),
        graph(
            "Evaluations by how they ended, in 10 minutes",
            "Errors are tried again; a checkpoint that keeps failing is skipped in the end.",
            *(
                Query(
                    rise(
                        "tandem_eval_attempts_total", within="10m", eval_set=SETS, outcome=outcome
                    ),
                    outcome,
                    _OUTCOMES[outcome],
                )
                for outcome in ("ok", "error", "skipped")
            ),
            width=6,
            unit="none",
            stacked=True,
            bars=True,
        ),
        graph(
            "Time of an evaluation, by phase",
            "Mean of an hour: restoring the weights, scoring the images, publishing the result.",
            Query(mean("tandem_eval_phase_seconds", by="phase"), "{{phase}}"),
            width=8,
            unit="s",
            stacked=True,
        ),
        graph(
            "Time of an evaluation, by eval set",
            "Mean of an hour, from the restore to the ledger.",
            Query(mean("tandem_eval_seconds", eval_set=SETS, by="eval_set"), "{{eval_set}}"),
            width=8,
            unit="s",
        ),
        graph(
            "Bad input",
            "Records of the eval sets that could not be read, and ledger entries that are damaged; "
            "since this evaluator started.",
            Query(
                f"max by (eval_set) ({one('tandem_eval_bad_records_total', eval_set=SETS)})",
                "records of {{eval_set}}",
            ),
            Query(most("tandem_eval_unreadable_entries"), "ledger entries", "purple"),
            width=8,
            unit="none",
            steps=True,
        ),
    ]
