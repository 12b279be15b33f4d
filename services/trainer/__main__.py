"""Entry point of `tandem-trainer`."""

from __future__ import annotations

import os
import sys

from services import quiet
from services.exits import Exit
from services.processes import begin_logging, exit_code_of, settings_or_exit
from services.signals import StopRequest
from services.trainer.settings import TrainerSettings


def main() -> None:
    """Reads the settings, trains, and leaves with an exit code of `services.exits`."""
    settings = settings_or_exit(
        TrainerSettings,
        program="tandem-trainer",
        prefix="TANDEM_TRAINER_",
        arguments=sys.argv[1:],
        environment=os.environ,  # noqa: TID251  # entry points hand it on
    )
    log_fields = begin_logging(settings, process="trainer")
    quiet.prepare(os.environ)  # noqa: TID251
    stop = StopRequest()
    stop.install()

    def work() -> Exit:
        # TensorFlow takes seconds to import: --help and a misspelt flag need not wait for it.
        with quiet.greetings_withheld():
            from services.trainer.app import run_trainer  # noqa: PLC0415

        return run_trainer(settings, stop, log_fields)

    sys.exit(exit_code_of(work))


if __name__ == "__main__":
    main()
