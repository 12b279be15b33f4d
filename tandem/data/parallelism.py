"""How many examples are prepared at once: as many as there are processors.

Not by tf.data's autotuning. Its thread sleeps for up to a minute between two rounds, and whoever
drops an iterator waits for it to wake up: a trainer that was told to stop lost its grace period so,
and each evaluation ended with a pause.
"""

from __future__ import annotations

import os

import tensorflow as tf


def parallel_calls() -> int:
    """Processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def without_autotune(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """The dataset with the numbers that it was given."""
    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.with_options(options)
