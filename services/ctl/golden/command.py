"""``scripts/golden FOLDER...``: one line per compared output.

Exit codes: 0 nothing differs, 1 something differs, 2 a folder is no golden case. A folder whose
architecture this version can't build is named with the field that stands in the way; it counts as
nothing compared, not as a difference.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from services.ctl.golden.cases import GoldenCase, load_case
from services.ctl.golden.checkpoints import compare_checkpoints
from services.ctl.golden.comparisons import Comparison
from services.ctl.golden.outputs import compare_outputs
from services.ctl.golden.variables import compare_variables
from services.ctl.golden.weights import assign_weights
from tandem.errors import ConfigError, InputError
from tandem.models.build import build_model


def compare_case(case: GoldenCase) -> Iterator[Comparison]:
    """Every comparison of one case.

    Raises:
        ConfigError: the model can't be built; names the field.
        InputError: the case lacks what its architecture needs.
    """
    model = build_model(case.config.model)
    variables = compare_variables(model, case)
    yield variables
    yield from compare_checkpoints(case)
    if variables.equal:
        assign_weights(model)
        yield from compare_outputs(model, case)


def main(argv: Sequence[str] | None = None) -> int:
    """Compares every folder and prints the verdicts."""
    parser = argparse.ArgumentParser(
        prog="scripts/golden", description="Compare our models with outputs of the original."
    )
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    codes = [_compare_folder(folder) for folder in parser.parse_args(argv).folders]
    return max(codes)


def _compare_folder(folder: Path) -> int:
    print(f"== {folder}")
    try:
        case = load_case(folder)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    different = total = 0
    try:
        for row in compare_case(case):
            print(row, flush=True)
            total += 1
            different += not row.equal
    except ConfigError as error:
        print(f"cannot build: {error}")
        return 0
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"{total} outputs compared, {different} differ")
    return 1 if different else 0
