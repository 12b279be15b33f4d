"""Whether saving works, and what it costs."""

from __future__ import annotations

from deploy.dashboards.panels import Panel, Query, graph
from deploy.dashboards.selections import ago, mean, most, rise

_SAVES = "tandem_ckpt_saves_total"
_DAMAGED = "tandem_ckpt_verify_failures_total"


def checkpoints() -> list[Panel]:
    """Whether saving works, and what it costs."""
    commit = most("tandem_ckpt_last_commit_timestamp_seconds")
    return [
        graph(
            "Age of the newest checkpoint",
            "A sawtooth whose teeth stay below the interval. The budget is three intervals.",
            Query(ago(commit), "age", "blue"),
            Query(
                most("tandem_ckpt_interval_target_seconds"),
                "interval",
                "text",
                dashed=True,
            ),
            Query(
                f"3 * {most('tandem_ckpt_interval_target_seconds')}",
                "budget",
                "red",
                dashed=True,
            ),
            width=6,
            unit="s",
        ),
        graph(
            "Time of a save, by phase",
            "Mean of an hour. Training stands still for the snapshot alone; the rest goes on "
            "beside it.",
            Query(mean("tandem_ckpt_phase_seconds", by="phase"), "{{phase}}"),
            width=6,
            unit="s",
            stacked=True,
        ),
        graph(
            "Saves by how they ended, in 10 minutes",
            "And checkpoints that did not match their checksums: never resume from those, see "
            "TandemCheckpointCorrupt.",
            Query(rise(_SAVES, within="10m", outcome="ok"), "ok", "green"),
            Query(rise(_SAVES, within="10m", outcome="error"), "error", "red"),
            Query(rise(_DAMAGED, within="10m"), "damaged", "purple"),
            width=6,
            unit="none",
            stacked=True,
            bars=True,
        ),
        graph(
            "Stalls: time that training stood still for a save",
            "Mean of an hour; and the saves under way (1), with one more that waits (2).",
            Query(mean("tandem_ckpt_stall_seconds"), "stall", "orange"),
            Query(most("tandem_ckpt_pending_saves"), "saves under way", "text", unit="none"),
            width=6,
            unit="s",
        ),
    ]
