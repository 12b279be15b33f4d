"""PromQL that panels share; label values that begin with `~` are regular expressions."""

from __future__ import annotations

RUN = 'namespace="$namespace", run="$run"'
SETS = "~$eval_set"


def series(name: str, selection: str, /, **labels: str) -> str:
    """The series of a metric within a selection: `name{selection, label="value"}`."""
    matchers = [
        f'{label}=~"{value[1:]}"' if value.startswith("~") else f'{label}="{value}"'
        for label, value in labels.items()
    ]
    return f"{name}{{{', '.join([selection, *matchers])}}}"


def one(name: str, /, **labels: str) -> str:
    """The run's series of a metric."""
    return series(name, RUN, **labels)


def most(name: str, /, **labels: str) -> str:
    """One value for the run, whichever of its pods says it."""
    return f"max({one(name, **labels)})"


def ago(timestamp: str) -> str:
    """Seconds since."""
    return f"time() - {timestamp}"


def rate(name: str, /, *, by: str = "", within: str = "$__rate_interval", **labels: str) -> str:
    """A counter's growth in a second, summed."""
    grouping = f" by ({by})" if by else ""
    return f"sum{grouping} (rate({one(name, **labels)}[{within}]))"


def rise(name: str, /, *, within: str, **labels: str) -> str:
    """A counter's growth, summed."""
    return f"sum(increase({one(name, **labels)}[{within}]))"


def mean(histogram: str, /, *, by: str = "", within: str = "1h", **labels: str) -> str:
    """Mean of what a histogram observed."""
    total = rate(f"{histogram}_sum", by=by, within=within, **labels)
    return f"{total} / {rate(f'{histogram}_count', by=by, within=within, **labels)}"


def quantile(share: float, histogram: str, /, *, by: str = "", within: str, **labels: str) -> str:
    """A quantile of what a histogram observed."""
    grouping = f"le, {by}" if by else "le"
    buckets = rate(f"{histogram}_bucket", by=grouping, within=within, **labels)
    return f"histogram_quantile({share}, {buckets})"


def waits() -> str:
    """Seconds that the oldest checkpoint has waited; 0 when none waits."""
    since = most("tandem_ckpt_oldest_pending_timestamp_seconds")
    return f"(time() - {since}) * ({since} > bool 0)"


def share_of_budget() -> str:
    """The same, of what the evaluator's settings allow."""
    return f"{waits()} / {most('tandem_eval_lag_budget_seconds')}"
