"""How fast a run trains, and what a step's time goes into."""

from __future__ import annotations

from deploy.dashboards.panels import Panel, Query, graph
from deploy.dashboards.selections import most, one, quantile, rate


def training() -> list[Panel]:
    """How fast it trains, and what a step's time goes into."""
    step = "tandem_train_step_seconds"
    return [
        graph(
            "Speed",
            "Steps in a second, of late; dashed, the best of the last hour.",
            Query(most("tandem_train_steps_per_second"), "steps/s", "blue"),
            Query(
                f"max(max_over_time({one('tandem_train_steps_per_second')}[1h]))",
                "best of the hour",
                "text",
                dashed=True,
            ),
            width=6,
            unit="none",
        ),
        graph(
            "Time of a step",
            "Median and slowest steps, waiting for data included.",
            Query(quantile(0.5, step, within="$__rate_interval"), "median", "blue"),
            Query(quantile(0.99, step, within="$__rate_interval"), "slowest 1 %", "orange"),
            width=6,
            unit="s",
        ),
        graph(
            "Share of time that steps waited for data",
            "Near 0 % the accelerator decides the speed; high values mean slow input: storage, "
            "decoding, or too few CPUs.",
            Query(
                f"{rate('tandem_train_data_seconds_total')} / {rate(f'{step}_sum')}",
                "waiting for data",
                "orange",
            ),
            width=6,
            unit="percentunit",
            maximum=1,
        ),
        graph(
            "Learning rate",
            "As the schedule has it. It goes on where it was after a restart.",
            Query(most("tandem_train_learning_rate"), "learning rate", "purple"),
            width=6,
            unit="none",
        ),
    ]
