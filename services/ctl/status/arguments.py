"""Arguments of `tandem status` and `tandem explain`; what they do is imported when asked for."""

from __future__ import annotations

import argparse

from services.ctl.store.commands import Commands
from services.ctl.streams import shortened

_WATCH_SECONDS = 5.0
_MIN_WATCH, _MAX_WATCH = 1.0, 3600.0

_STATUS = """\
Is this run all right, whose fault is it if not, and what now? Looks at the run folder, and with -n
at the Kubernetes API, and needs neither Prometheus nor a living pod. The first line is the verdict
and whose fault it is (ours, data, storage, cluster, quota, unknown); the last ones are a command
that is safe to run now, and the runbook's section. Several runs are shown as a table, worst first.
Ages are by the store's clock."""

_CODES = "Exits with 0: healthy, 1: degraded, 2: broken, 3: unknown, as when nobody could look."


def add_status(commands: Commands) -> None:
    """Adds `status`."""
    status = commands.add_parser(
        "status",
        help="is a run all right, whose fault is it if not, and what now",
        description=_STATUS,
        epilog=_CODES,
    )
    status.add_argument(
        "run",
        metavar="RUN",
        nargs="?",
        help="run folder, local or gs://BUCKET/PREFIX; with -n also a release's name",
    )
    status.add_argument(
        "-n", "--namespace", help="Kubernetes namespace, by your kubeconfig; all its runs, or RUN"
    )
    status.add_argument("--all", action="store_true", help="the runs of all namespaces")
    status.add_argument(
        "--watch",
        type=_seconds,
        nargs="?",
        const=_WATCH_SECONDS,
        metavar="SECONDS",
        help="look again and again, until Ctrl-C (default: every 5 s)",
    )
    status.add_argument(
        "--json",
        action="store_true",
        help='print one JSON object instead: "schema", "run", "health", "cause", "text", '
        '"findings", "next", "runbook", "lines", "facts"; of several runs "schema" and "runs"',
    )
    status.set_defaults(run_command=_status)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not _MIN_WATCH <= value <= _MAX_WATCH:
        raise argparse.ArgumentTypeError(
            f"{shortened(text)!r} is no number of seconds from {_MIN_WATCH:g} to {_MAX_WATCH:g}"
        )
    return value


def _status(arguments: argparse.Namespace) -> int:
    from services.ctl.status.command import status  # noqa: PLC0415

    return status(arguments)


def add_explain(commands: Commands) -> None:
    """Adds `explain`."""
    explain = commands.add_parser(
        "explain",
        help="the story of one checkpoint: saved, leased, evaluated, pinned, deleted",
        description="Tells what became of the checkpoints of a step, in the order of time, by the "
        "store's clock.",
    )
    explain.add_argument("run", metavar="RUN", help="run folder, local or gs://BUCKET/PREFIX")
    explain.add_argument("step", metavar="STEP", type=_step, help="number of the step, as 1000")
    explain.add_argument(
        "--json",
        action="store_true",
        help='print one JSON object instead: "run", "step", "checkpoints", each with "checkpoint", '
        '"state" and "events" ("at", "what", "text")',
    )
    explain.set_defaults(run_command=_explain)


def _step(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(
            f"{shortened(text)!r} is no step; expected a whole number from 0, as 1000"
        )
    return int(text)


def _explain(arguments: argparse.Namespace) -> int:
    from services.ctl.status.explaining import explain  # noqa: PLC0415

    return explain(arguments.run, arguments.step, as_json=arguments.json)
