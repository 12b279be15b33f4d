"""Refuses what this version can't do: several processes that train one model together."""

from __future__ import annotations

import json

from tandem.errors import ConfigError


def refuse_several_workers(tf_config: str | None) -> None:
    """Raises ConfigError when TF_CONFIG describes a cluster of more than one process.

    Each of them would train by itself, and all but one would be superseded.

    Args:
        tf_config: the variable's value, as TensorFlow's strategies for several workers read it.
    """
    if not tf_config:
        return
    try:
        cluster = json.loads(tf_config).get("cluster", {})
        num_processes = sum(len(addresses) for addresses in cluster.values())
    except (ValueError, AttributeError, TypeError) as error:
        raise ConfigError(
            f"TF_CONFIG is {tf_config!r}; expected nothing, or a JSON object as TensorFlow reads it"
        ) from error
    if num_processes > 1:
        raise ConfigError(
            f"TF_CONFIG names {num_processes} processes; this version trains in one: leave "
            "TF_CONFIG out, or in the chart set trainer.workers to 1 and choose a TPU topology of "
            "one host"
        )
