"""Entry point of `tandem-trainer`."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from typing import NoReturn

from services import quiet
from services.exits import Exit
from services.last_resort import end_if_hanging
from services.processes import begin_logging, exit_code_of, settings_or_exit
from services.signals import StopRequest
from services.trainer.background import SWITCH_SECONDS, THREAD_NAME
from services.trainer.settings import TrainerSettings
from services.trainer.workers import refuse_several_workers

# For the end of a save that is given up at its deadline, and for the last words about it.
_SECONDS_PAST_THE_DEADLINE = 10.0


def main() -> None:
    """Reads the settings, trains, and leaves with an exit code of `services.exits`."""
    began = time.monotonic()
    settings = settings_or_exit(
        TrainerSettings,
        program="tandem-trainer",
        prefix="TANDEM_TRAINER_",
        arguments=sys.argv[1:],
        environment=os.environ,  # noqa: TID251  # entry points hand it on
    )
    log_fields = begin_logging(settings, process="trainer")
    quiet.prepare(os.environ)  # noqa: TID251
    sys.setswitchinterval(SWITCH_SECONDS)
    stop = StopRequest()
    stop.install()
    end_if_hanging(stop, seconds=settings.termination_deadline + _SECONDS_PAST_THE_DEADLINE)

    tf_config = os.environ.get("TF_CONFIG")  # noqa: TID251  # entry points hand it on

    image = os.environ.get("TANDEM_IMAGE")  # noqa: TID251

    def work() -> Exit:
        refuse_several_workers(tf_config)
        # TensorFlow takes seconds to import: --help and a misspelt flag need not wait for it.
        with quiet.greetings_withheld():
            from services.trainer.app import run_trainer  # noqa: PLC0415

        return run_trainer(settings, stop, log_fields, image=image, began=began)

    _leave(exit_code_of(work))


def _leave(code: Exit) -> NoReturn:
    """Ends the process, also while a thread still hangs in the store.

    An ordinary exit would take TensorFlow apart under that thread, and crash with another code.
    """
    if any(thread.name == THREAD_NAME for thread in threading.enumerate()):
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    main()
