"""What both processes were doing."""

from __future__ import annotations

from deploy.dashboards import phases
from deploy.dashboards.panels import Panel, Query, graph, timeline
from deploy.dashboards.selections import RUN, ago, most, one


def doing() -> list[Panel]:
    """The same over time: phases, steps, silence."""
    return [
        timeline(
            "What trainer and evaluator were doing",
            "A gap means that nothing was scraped: no pod, or one that is starting.",
            Query(phases.phase_of("train", RUN), "trainer", meanings=phases.MEANINGS),
            Query(phases.phase_of("eval", RUN), "evaluator", meanings=phases.MEANINGS),
            width=12,
        ),
        graph(
            "Steps",
            "The newest step that is trained, committed to the store, and evaluated on every set. "
            "The curves stay close together while all is well.",
            Query(most("tandem_train_step"), "trained", "blue"),
            Query(most("tandem_ckpt_last_commit_step"), "committed", "green"),
            Query(f"min({one('tandem_eval_last_completed_step')})", "evaluated", "orange"),
            width=6,
            unit="locale",
        ),
        graph(
            "Silence",
            "Time since the last step and since the evaluator's loop came by. A step that takes "
            "longer than the stall budget is a stall: see TandemTrainStalled.",
            Query(ago(most("tandem_train_last_step_timestamp_seconds")), "trainer", "blue"),
            Query(ago(most("tandem_eval_heartbeat_timestamp_seconds")), "evaluator", "orange"),
            Query(most("tandem_train_stall_budget_seconds"), "stall budget", "red", dashed=True),
            width=6,
            unit="s",
        ),
    ]
