"""Exit codes of the processes; the chart's `podFailurePolicy` and the demo rely on them."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """What a process says by leaving."""

    FINISHED = 0
    """Trainer: exactly `num_steps` steps are committed. Evaluator: all of them are evaluated."""

    UNEXPECTED = 1
    """A fault of ours or of the machine; starting again may help."""

    BAD_INPUT = 2
    """What the user gave is wrong; the message says where to mend it."""

    TRAINING_FAILED = 3
    """Training can't go on (non-finite loss, unreadable record); starting again won't help."""

    TRAINER_FAILED = 4
    """Evaluator: the trainer ended as failed; every checkpoint it left is evaluated."""

    TIMED_OUT = 5
    """Evaluator: no new checkpoint for `wait_interval` and no sign of life of the trainer."""

    SUPERSEDED = 6
    """Trainer: a newer attempt of the run has taken over; what was committed is safe."""

    INTERRUPTED = 130
    """A second Ctrl-C: nothing was saved on the way out."""

    SAVED_RESUME_ME = 42
    """Stopped by a signal with everything saved; start again to go on."""
