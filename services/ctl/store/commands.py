"""The `tandem store` subcommands' arguments; what they do is imported when it is asked for."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TypeAlias

from services.ctl.streams import PlainConsole, shortened
from services.exits import Exit

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

_DESCRIPTION = """\
Looks at a run folder, verifies it and cleans it up. RUN is a local folder or gs://BUCKET/PREFIX,
as given to the trainer. Checkpoints are called by step and attempt: 1000-2 is step 1000, written by
the trainer's second attempt."""


def add_store(commands: Commands) -> None:
    """Adds `store` and its subcommands."""
    store = commands.add_parser(
        "store", help="look at a run folder, verify it, clean it up", description=_DESCRIPTION
    )
    subcommands = store.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_ls(subcommands)
    _add_verify(subcommands)
    _add_gc(subcommands)
    add_ledger(subcommands)
    _add_pin(subcommands)
    _add_unpin(subcommands)
    _add_probe(subcommands)


def add_ledger(commands: Commands) -> None:
    """Adds `ledger`, which stands on the upper level too."""
    _add(
        commands,
        "ledger",
        _with_advice(_ledger),
        summary="COCO numbers of every evaluated checkpoint",
        description="Prints a table of COCO numbers per eval set, then the checkpoints that were "
        "skipped or failed, and why.",
        json_help='{"entries": [...]}: the ledger as recorded, with all metrics, image counts and '
        "durations",
    )


def _add(
    commands: Commands,
    name: str,
    run_command: Callable[[argparse.Namespace], Exit],
    *,
    summary: str,
    description: str,
    json_help: str,
) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=summary, description=description)
    command.add_argument("run", metavar="RUN", help="run folder, local or gs://BUCKET/PREFIX")
    command.add_argument(
        "--json", action="store_true", help=f"print one JSON object instead: {json_help}"
    )
    command.set_defaults(run_command=run_command)
    return command


def _with_advice(
    run_command: Callable[[argparse.Namespace], Exit],
) -> Callable[[argparse.Namespace], Exit]:
    """The command, which points to `verify` where it meets something damaged."""

    def run(arguments: argparse.Namespace) -> Exit:
        from services.ctl.store.runs import damage_explained  # noqa: PLC0415

        with damage_explained(arguments.run):
            return run_command(arguments)

    return run


def _add_ls(commands: Commands) -> None:
    _add(
        commands,
        "ls",
        _with_advice(_ls),
        summary="who trains, and every checkpoint: age, size, evaluations, leases, pins, damage",
        description="Shows the newest attempt, then every checkpoint, the newest first: its age "
        "and size, the main metric (mAP) or the state of each evaluation with the tries begun so "
        "far, and marks. Below: who reads it, who pinned it and why, what is damaged, what failed. "
        "Ages compare the writer's clock with this machine's.",
        json_help='"run", "location", "attempt", "retention", "eval_sets", "newest", "final" and '
        '"checkpoints", each with "checkpoint", "step", "attempt", "size", "committed_at", flags '
        '("newest", "final", "void", "retiring", "damaged", "pinned", "committed"), "damage", '
        '"pin", "leases" and "evaluations"',
    )


def _ls(arguments: argparse.Namespace) -> Exit:
    from services.ctl.store.showing import show  # noqa: PLC0415

    return show(arguments.run, as_json=arguments.json, console=PlainConsole())


def _add_verify(commands: Commands) -> None:
    _add(
        commands,
        "verify",
        _verify,
        summary="re-read every byte of a run; exit 1 when anything is wrong",
        description="Re-reads every byte: data against their commits and the store's own "
        "checksums, each record against its checksum and its name, TensorFlow's state file, the "
        "ledger, and objects that don't belong there. Writes nothing, so it may run beside a "
        "trainer. Prints a line per finding and what to do about it. Exits 0 when all is sound, "
        "1 when something is wrong, 2 when it can't tell.",
        json_help='"sound", "findings" (each "object", "expected", "found", "advice"), '
        '"checkpoints", "objects", "bytes", "uncommitted"',
    )


def _verify(arguments: argparse.Namespace) -> Exit:
    from services.ctl.store.verifying import verify  # noqa: PLC0415

    return verify(arguments.run, as_json=arguments.json)


def _add_gc(commands: Commands) -> None:
    gc = _add(
        commands,
        "gc",
        _with_advice(_gc),
        summary="retire and sweep what a trainer that has gone would have",
        description="Cleans up after the last trainer: retires the checkpoints that its retention "
        "policy doesn't keep, and sweeps void commits, data without a commit, stale leases. A "
        "running trainer does that by itself, so one that shows life is left alone (exit 2; with "
        "nothing to clean up behind it, exit 0). "
        "A trainer that left no end, and leases, are watched for a minute (--lease-seconds) before "
        "they are taken for dead. Stopping it at any time is safe, and so is running it again.",
        json_help='"dry_run", "attempt", "retired" (each "checkpoint", "reason"), "swept" (each '
        '"what": data, lease or pin, "checkpoint", "lease"), "state_file": whether it changed, '
        '"waiting" (each "checkpoint", "kept_by"), "left"',
    )
    gc.add_argument(
        "--dry-run", action="store_true", help="write nothing; say what would be done, exactly"
    )
    gc.add_argument(
        "--lease-seconds",
        type=_seconds,
        default=60.0,
        metavar="SECONDS",
        help="silence after which a trainer or a reader is taken for dead, 1 to 86400 (default: "
        "60); less than the readers' own 60 takes checkpoints from under live ones",
    )


_MIN_SECONDS, _MAX_SECONDS = 1.0, 86400.0


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not _MIN_SECONDS <= value <= _MAX_SECONDS:
        raise argparse.ArgumentTypeError(
            f"{shortened(text)!r} is no number of seconds from {_MIN_SECONDS:g} to "
            f"{_MAX_SECONDS:g} (a day)"
        )
    return value


def _gc(arguments: argparse.Namespace) -> Exit:
    from services.ctl.store.cleaning import clean  # noqa: PLC0415

    return clean(
        arguments.run,
        dry_run=arguments.dry_run,
        lease_seconds=arguments.lease_seconds,
        as_json=arguments.json,
    )


def _ledger(arguments: argparse.Namespace) -> Exit:
    from services.ctl.store.ledger import show_ledger  # noqa: PLC0415

    return show_ledger(arguments.run, as_json=arguments.json, console=PlainConsole())


_PIN_JSON = '"checkpoint", "pinned", "changed"'


def _add_checkpoint(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "checkpoint", metavar="STEP[-ATTEMPT]", help="the checkpoint: 1000, or 1000-2"
    )


def _add_pin(commands: Commands) -> None:
    pin = _add(
        commands,
        "pin",
        _with_advice(_pin),
        summary="keep a checkpoint, whatever the retention policy says",
        description="Keeps a checkpoint, whatever the retention policy says, until it is unpinned.",
        json_help=_PIN_JSON,
    )
    _add_checkpoint(pin)
    pin.add_argument("--reason", default="", metavar="TEXT", help="shown by ls")


def _pin(arguments: argparse.Namespace) -> Exit:
    from services.ctl.store.pinning import pin_checkpoint  # noqa: PLC0415

    return pin_checkpoint(
        arguments.run, arguments.checkpoint, reason=arguments.reason, as_json=arguments.json
    )


def _add_unpin(commands: Commands) -> None:
    unpin = _add(
        commands,
        "unpin",
        _with_advice(_unpin),
        summary="leave a checkpoint to the retention policy again",
        description="Leaves a checkpoint to the retention policy again.",
        json_help=_PIN_JSON,
    )
    _add_checkpoint(unpin)


def _unpin(arguments: argparse.Namespace) -> Exit:
    from services.ctl.store.pinning import unpin_checkpoint  # noqa: PLC0415

    return unpin_checkpoint(arguments.run, arguments.checkpoint, as_json=arguments.json)


def _add_probe(commands: Commands) -> None:
    _add(
        commands,
        "probe",
        _probe,
        summary="try whether a place can hold a run, before anything is trained",
        description="Puts a small object below RUN, replaces, lists, reads and deletes it, and "
        "tries two puts that must be refused. Says how long each took. Exits 0 when the place can "
        "hold a run for whoever calls, 1 when the store fails, 2 when the place or the rights "
        "are not what they should be.",
        json_help='"location" and "seconds" by step',
    )


def _probe(arguments: argparse.Namespace) -> Exit:
    from services.ctl.store.probing import probe  # noqa: PLC0415
    from tandem.checkpoints.opening import open_store  # noqa: PLC0415

    return probe(open_store(arguments.run), as_json=arguments.json)
