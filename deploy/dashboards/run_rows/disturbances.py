"""Restarts, and what they cost."""

from __future__ import annotations

from deploy.dashboards.panels import Panel, Query, graph
from deploy.dashboards.selections import most, one


def disturbances() -> list[Panel]:
    """Restarts and what they cost."""
    return [
        graph(
            "Attempts",
            "Each start of the trainer is an attempt; a climb is a restart.",
            Query(most("tandem_train_attempt"), "attempt", "blue"),
            width=6,
            unit="none",
            steps=True,
        ),
        graph(
            "How earlier attempts ended",
            "Asked: it was told to leave and saved. Killed: it left no word, as after a lost node "
            "or too little memory. Failed: an error of its own.",
            Query(f"max by (reason) ({one('tandem_preemptions_total')})", "{{reason}}"),
            width=6,
            unit="none",
            steps=True,
        ),
        graph(
            "Steps lost to restarts",
            "Steps that were trained after the checkpoint that the next attempt went on from; "
            "since the run began.",
            Query(most("tandem_lost_steps_total"), "steps", "red"),
            width=6,
            unit="locale",
            steps=True,
        ),
        graph(
            "Time without progress, by cause",
            "Share of this process's time. All together above 30 % for hours: TandemGoodputLow.",
            Query(
                f"max by (cause) ({one('tandem_badput_seconds_total')})"
                f" / on () group_left () {most('tandem_wall_seconds_total')}",
                "{{cause}}",
            ),
            width=6,
            unit="percentunit",
            stacked=True,
        ),
    ]
