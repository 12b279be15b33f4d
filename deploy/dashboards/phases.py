"""What both processes are doing, as one number each, so that it makes one bar over time."""

from __future__ import annotations

from typing import Literal, get_args

from deploy.dashboards.panels import Meaning
from tandem.telemetry.labels import EvalPhase, TrainPhase

# One colour for one kind of doing: blue prepares, green works, yellow writes, red is trouble.
_COLOURS: dict[TrainPhase | EvalPhase, str] = {
    "starting": "light-blue",
    "restoring": "blue",
    "training": "green",
    "running": "green",
    "saving": "yellow",
    "publishing": "yellow",
    "waiting": "super-light-green",
    "backing_off": "orange",
    "preempted": "orange",
    "stopped": "purple",
    "failed": "red",
    "finished": "dark-blue",
    "done": "dark-blue",
}
_WORDS: dict[TrainPhase | EvalPhase, str] = {"running": "scoring", "backing_off": "backing off"}
_NUMBERS = {
    phase: number
    for number, phase in enumerate(dict.fromkeys(get_args(TrainPhase) + get_args(EvalPhase)))
}

MEANINGS = {
    number: Meaning(_WORDS.get(phase, phase), _COLOURS[phase]) for phase, number in _NUMBERS.items()
}
"""What the numbers of `phase` stand for; the same phase has one number in both processes."""


def phase_of(process: Literal["train", "eval"], selection: str) -> str:
    """The number of a process's phase, for each of the selected runs."""
    phases = get_args(TrainPhase if process == "train" else EvalPhase)
    terms = [
        f"{_NUMBERS[phase]} * group by (namespace, run)"
        f' (tandem_{process}_phase{{{selection}, phase="{phase}"}} == 1)'
        for phase in phases
    ]
    return "\nor ".join(terms)
