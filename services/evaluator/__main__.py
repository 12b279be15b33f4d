"""Entry point of `tandem-evaluator`."""

from __future__ import annotations

import os
import sys

from services import quiet
from services.evaluator.settings import EvaluatorSettings
from services.exits import Exit
from services.last_resort import end_if_hanging
from services.processes import begin_logging, exit_code_of, settings_or_exit
from services.signals import StopRequest

# Much more than a batch takes, after which an evaluator looks whether it is to stop.
_SECONDS_TO_STOP = 120.0


def main() -> None:
    """Reads the settings, evaluates, and leaves with an exit code of `services.exits`."""
    settings = settings_or_exit(
        EvaluatorSettings,
        program="tandem-evaluator",
        prefix="TANDEM_EVALUATOR_",
        arguments=sys.argv[1:],
        environment=os.environ,  # noqa: TID251  # entry points hand it on
    )
    begin_logging(settings, process="evaluator")
    quiet.prepare(os.environ)  # noqa: TID251
    stop = StopRequest()
    stop.install()
    end_if_hanging(stop, seconds=_SECONDS_TO_STOP)

    image = os.environ.get("TANDEM_IMAGE")  # noqa: TID251  # entry points hand it on

    def work() -> Exit:
        # TensorFlow takes seconds to import: --help and a misspelt flag need not wait for it.
        with quiet.greetings_withheld():
            from services.evaluator.app import run_evaluator  # noqa: PLC0415

        return run_evaluator(settings, stop, image=image)

    sys.exit(exit_code_of(work))


if __name__ == "__main__":
    main()
