"""A process that was asked to stop ends, even when it hangs.

Python acts on a signal when its main thread comes back to Python. A thread that waits in
TensorFlow for a record that never comes does not, so it never learns that it is to stop. The system
notes the signal all the same (`signal.set_wakeup_fd`): a thread that reads these notes passes the
wish on, and ends a process that has not ended by itself long after its time.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable

from services.exits import Exit
from services.signals import STOP_SIGNALS, StopRequest
from services.watchdog import stack_of

logger = logging.getLogger(__name__)

_SECONDS_AFTER_A_SECOND_CTRL_C = 5.0
_SECONDS_FOR_LAST_WORDS = 2.0


def end_if_hanging(
    stop: StopRequest,
    *,
    seconds: float,
    seconds_after_ctrl_c: float = _SECONDS_AFTER_A_SECOND_CTRL_C,
    leave: Callable[[Exit], None] = os._exit,
) -> None:
    """Lets a signal to stop be heard while the main thread hangs, and ends what hangs on.

    Args:
        stop: told of the signal.
        seconds: from the first signal to the end of the process with `Exit.UNEXPECTED`.
        seconds_after_ctrl_c: from a second Ctrl-C to its end with `Exit.INTERRUPTED`.
        leave: ends the process at once.

    Raises:
        ValueError: this is not the main thread.
    """
    notes, noting = os.pipe()
    os.set_blocking(noting, False)
    signal.set_wakeup_fd(noting, warn_on_full_buffer=False)
    main = threading.get_ident()

    def speak(after: float) -> None:
        stack = stack_of(main)
        logger.error(
            "still there %g s after a signal to stop, and ends without saving: %s", after, stack
        )
        logging.shutdown()
        sys.stderr.flush()

    def give_up(after: float, code: Exit) -> None:
        # Whoever hangs may do so while it logs, with the lock that these words need.
        words = threading.Thread(target=speak, args=(after,), name="last words", daemon=True)
        words.start()
        words.join(_SECONDS_FOR_LAST_WORDS)
        leave(code)

    def give_up_later(after: float, code: Exit) -> None:
        timer = threading.Timer(after, give_up, (after, code))
        timer.daemon = True
        timer.start()

    def listen() -> None:
        was_asked = was_interrupted = False
        while True:
            for number in os.read(notes, 64):
                if number not in STOP_SIGNALS:
                    continue
                if not was_asked:
                    stop.set()
                    give_up_later(seconds, Exit.UNEXPECTED)
                elif was_interrupted and number == signal.SIGINT:
                    give_up_later(seconds_after_ctrl_c, Exit.INTERRUPTED)
                was_asked = True
                was_interrupted = was_interrupted or number == signal.SIGINT

    threading.Thread(target=listen, name="signals", daemon=True).start()
