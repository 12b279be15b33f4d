"""Entry point of `tandem`: subcommands for people.

Exit codes are those of `services.exits`, and 141 where nobody reads the output.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from pathlib import Path

from rich.console import Console

import tandem
from services import quiet
from services.ctl import streams
from services.ctl.status.arguments import add_explain, add_status
from services.ctl.store.commands import Commands, add_ledger, add_store
from services.exits import Exit
from tandem.errors import TandemError

_STEPS = re.compile(r"0*[1-9][0-9]{0,8}", re.ASCII)


# `tandem status` says by 2 that a run is broken, which a misspelt flag does not tell.
_UNKNOWN = 3


def main() -> None:
    """Runs one subcommand; a mistake of the user's ends with its message and exit code 2."""
    streams.prepare()
    quiet.prepare(os.environ)  # noqa: TID251
    sys.exit(streams.carried_out(_run))


def _run() -> int:
    try:
        arguments = _parser().parse_args()
    except SystemExit as leaving:
        if leaving.code == Exit.BAD_INPUT and sys.argv[1:2] == ["status"]:
            return _UNKNOWN
        raise
    try:
        return int(arguments.run_command(arguments))
    except BrokenPipeError:
        raise
    except (TandemError, OSError) as error:
        sys.stderr.write(f"tandem: {streams.escaped_lines(str(error))}\n")
        return Exit.BAD_INPUT
    except KeyboardInterrupt:
        return Exit.INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tandem", description="Trains a detector and evaluates every checkpoint of it."
    )
    parser.add_argument("--version", action="version", version=f"tandem {tandem.__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_demo(commands)
    _add_check(commands)
    _add_evaluate(commands)
    add_status(commands)
    add_explain(commands)
    add_ledger(commands)
    add_store(commands)
    return parser


def _add_demo(commands: Commands) -> None:
    demo = commands.add_parser(
        "demo",
        help="a small experiment from nothing to metrics, shown live, in under five minutes",
        description="Makes pictures of shapes, trains a small detector on them and evaluates each "
        "of its checkpoints, side by side, shown live. Ctrl-C stops both with everything saved; "
        "started again, it goes on.",
    )
    demo.add_argument(
        "--folder",
        type=_local_path,
        default=Path("runs"),
        help="for data and runs (default: runs)",
    )
    demo.add_argument(
        "--run",
        type=_local_path,
        help="run folder to go on with (default: the first unfinished)",
    )
    demo.add_argument("--steps", type=_steps, help="training steps, 1 or more (default: 600)")
    demo.set_defaults(run_command=_demo)


def _steps(text: str) -> int:
    if not _STEPS.fullmatch(text):
        raise argparse.ArgumentTypeError(
            f"{streams.shortened(text)!r} is no number of steps; expected 1 to 999999999"
        )
    return int(text)


def _local_path(text: str) -> Path:
    if "://" in text:
        raise argparse.ArgumentTypeError(f"{text!r} is no local path, which the demo needs")
    return Path(text)


def _demo(arguments: argparse.Namespace) -> Exit:
    from services.ctl.demo.run import run_demo  # noqa: PLC0415

    return run_demo(
        folder=arguments.folder,
        run=arguments.run,
        num_steps=arguments.steps,
        console=Console(),
    )


def _add_config(command: argparse.ArgumentParser) -> None:
    command.add_argument("--config", required=True, help="pipeline.config, a text proto")
    command.add_argument(
        "--override",
        action="append",
        default=[],
        metavar="TEXT",
        help="text proto merged onto the config; a repeated field replaces the config's; may be "
        "given several times",
    )


def _add_check(commands: Commands) -> None:
    check = commands.add_parser(
        "check",
        help="check a config, the files that it names and every record in them",
        description="Checks all that can be known to be wrong before a training: the config, the "
        "files that it names and every record in them.",
    )
    _add_config(check)
    check.add_argument(
        "--no-records",
        action="store_true",
        help="leave out the records, which take a while when they are many",
    )
    check.set_defaults(run_command=_check)


def _check(arguments: argparse.Namespace) -> Exit:
    with quiet.greetings_withheld():
        from services.ctl.check import check  # noqa: PLC0415

    return check(
        config_path=arguments.config,
        overrides=arguments.override,
        reads_records=not arguments.no_records,
        console=streams.PlainConsole(),
    )


def _add_evaluate(commands: Commands) -> None:
    evaluate = commands.add_parser(
        "evaluate",
        help="COCO numbers of one checkpoint on the config's eval sets",
        description="Prints the COCO numbers of one checkpoint on the eval sets of the config; "
        "nothing is recorded.",
    )
    _add_config(evaluate)
    evaluate.add_argument(
        "--checkpoint", required=True, help="its prefix, one of its files, or its folder"
    )
    evaluate.set_defaults(run_command=_evaluate)


def _evaluate(arguments: argparse.Namespace) -> Exit:
    with quiet.greetings_withheld():
        from services.ctl.evaluate import evaluate  # noqa: PLC0415

    return evaluate(
        config_path=arguments.config,
        checkpoint=arguments.checkpoint,
        overrides=arguments.override,
        console=streams.PlainConsole(),
    )


if __name__ == "__main__":
    main()
