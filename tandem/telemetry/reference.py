"""The reference of all metrics, `docs/metrics.md`, made from the catalogue: `scripts/metrics`."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from tandem.telemetry.catalogue import BOTH, EVALUATOR, STORE, TRAINER
from tandem.telemetry.definitions import Definition, Label

_HEAD = """\
# Metrics

Made from `tandem/telemetry/catalogue.py` by `scripts/metrics`; change it there.

Both processes serve `/metrics` (and `/healthz`) on `--metrics-port`. Namespace, run and pod come as
labels from the scrape, in a cluster from the chart's PodMonitor.

- What isn't known yet is NaN, or absent where the metric has labels; never a 0 or -1.
- Counters and histograms begin at 0 with all their label values, so a first error is an increase.
- The newest checkpoint, the newest and the best scores, and what earlier attempts cost are read
  from the run folder when a process starts. So counters of that kind don't begin at 0: use the
  difference over time of their maximum over a run's pods.
- `/metrics` is answered by a thread of its own, also when the loop hangs. Only the timestamps say
  that the loop came by: `tandem_train_last_step_timestamp_seconds` and
  `tandem_eval_heartbeat_timestamp_seconds`.
- The store's operations are `create` and `replace` (one small object), `upload` (a file), `get`,
  `read` (a part of an object), `stat`, `list`, `delete` and `download` (a range of a file). Their
  outcomes are `ok`; `precondition` and `missing`, which are answers; `refused` (no credentials, no
  permission, no such bucket) and `error` (everything else, timeouts included).
"""


def render() -> str:
    """The page."""
    sections = [
        _section("Trainer", TRAINER),
        _section("Evaluator", EVALUATOR),
        _section("Both", BOTH),
        _section("Both, for a run in a bucket", STORE),
    ]
    return "\n".join([_HEAD, *sections])


def _section(title: str, definitions: Iterable[Definition]) -> str:
    rows = [
        f"| `{d.name}` | {d.kind} | {d.unit} | {_labels(d.labels)} | {d.help} | {d.use} |"
        for d in definitions
    ]
    head = ["| name | type | unit | labels | what it is | what it is for |", "|---" * 6 + "|"]
    return "\n".join([f"## {title}", "", *head, *rows, ""])


def _labels(labels: Iterable[Label]) -> str:
    return "; ".join(
        f"`{label.name}`: {', '.join(label.values) if label.values else label.what}"
        for label in labels
    )


if __name__ == "__main__":
    sys.stdout.write(render())
