"""How the bucket answers."""

from __future__ import annotations

from deploy.dashboards.panels import Panel, Query, graph
from deploy.dashboards.selections import quantile, rate

_OUTCOMES = {
    "ok": "green",
    "precondition": "blue",
    "missing": "light-blue",
    "refused": "purple",
    "error": "red",
}


def bucket() -> list[Panel]:
    """How the bucket answers."""
    requests = "tandem_gcs_requests_total"
    return [
        graph(
            "Latency",
            "Median and slowest requests of all kinds, over 5 minutes.",
            Query(quantile(0.5, "tandem_gcs_seconds", within="5m"), "median", "blue"),
            Query(quantile(0.99, "tandem_gcs_seconds", within="5m"), "slowest 1 %", "orange"),
            width=6,
            unit="s",
        ),
        graph(
            "Slowest 1 % by kind of request",
            "Uploads and downloads grow with the checkpoint; the others should stay well below a "
            "second.",
            Query(
                quantile(0.99, "tandem_gcs_seconds", by="op", within="5m"),
                "{{op}}",
            ),
            width=6,
            unit="s",
        ),
        graph(
            "Requests by outcome",
            "Precondition and missing are ordinary answers (who was first? is it there?). Refused "
            "is a matter of identity or rights, error of the service or the network.",
            *(
                Query(rate(requests, outcome=outcome), outcome, _OUTCOMES[outcome])
                for outcome in ("ok", "precondition", "missing", "refused", "error")
            ),
            width=6,
            unit="reqps",
            stacked=True,
        ),
        graph(
            "Requests that failed",
            "Share of errors and refusals. The alerts' budget is 0.1 %: TandemGcsErrorFastBurn "
            "fires at 14 times that, TandemGcsErrorSlowBurn at 6 times.",
            Query(
                f"{rate(requests, outcome='~error|refused', within='5m')}"
                f" / {rate(requests, within='5m')}",
                "failed",
                "red",
            ),
            width=6,
            unit="percentunit",
        ),
    ]
