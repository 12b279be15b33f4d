"""Learning-rate schedules that can't be followed, often because of a default nobody sees."""

from __future__ import annotations

from collections.abc import Iterator

from google.protobuf.message import Message

from tandem.protos.optimizer_pb2 import (
    CosineDecayLearningRate,
    ManualStepLearningRate,
    Optimizer,
)


def schedule_problems(optimizer: Optimizer) -> list[str]:
    """What is wrong with the optimiser's learning rates, each with its full path."""
    kind = optimizer.WhichOneof("optimizer")
    if kind is None:
        return []
    rate = getattr(optimizer, kind).learning_rate
    schedule_kind = rate.WhichOneof("learning_rate")
    if schedule_kind is None:
        return []
    schedule = getattr(rate, schedule_kind)
    path = f"train_config.optimizer.{kind}.learning_rate.{schedule_kind}"
    problems = list(_bad_rates(schedule, path))
    if isinstance(schedule, CosineDecayLearningRate):
        problems.extend(_cosine_problems(schedule, path))
    elif isinstance(schedule, ManualStepLearningRate):
        problems.extend(_manual_step_problems(schedule, path))
    return problems


def _bad_rates(schedule: Message, path: str) -> Iterator[str]:
    """Rates below 0 or not finite, and steps to divide by that are 0."""
    for field in schedule.DESCRIPTOR.fields:
        value = getattr(schedule, field.name)
        if "learning_rate" in field.name and not 0 <= value < float("inf"):
            yield f"{path}.{field.name}: expected 0 or more, found {value:g}"
        if field.name in ("total_steps", "decay_steps") and value == 0:
            yield f"{path}.{field.name}: expected 1 or more, found 0"


def _cosine_problems(schedule: CosineDecayLearningRate, path: str) -> Iterator[str]:
    if schedule.warmup_learning_rate > schedule.learning_rate_base:
        yield (
            f"{path}: {_value(schedule, 'warmup_learning_rate')} is above "
            f"{_value(schedule, 'learning_rate_base')}; warm-up has to rise to the base rate, so "
            "set warmup_learning_rate to at most that"
        )
    if schedule.warmup_steps > schedule.total_steps:
        yield (
            f"{path}: {_value(schedule, 'warmup_steps')} is more than "
            f"{_value(schedule, 'total_steps')}; set warmup_steps to at most that (0: no warm-up)"
        )


def _manual_step_problems(schedule: ManualStepLearningRate, path: str) -> Iterator[str]:
    previous = 0
    for index, entry in enumerate(schedule.schedule):
        here = f"{path}.schedule[{index}]"
        if entry.step <= previous:
            yield f"{here}.step: expected more than {previous}, found {entry.step}"
        if not 0 <= entry.learning_rate < float("inf"):
            yield f"{here}.learning_rate: expected 0 or more, found {entry.learning_rate:g}"
        previous = entry.step


def _value(schedule: Message, name: str) -> str:
    """``warmup_steps 10000 (the default)``: a default is what the user can't see in the file."""
    note = "" if schedule.HasField(name) else " (the default, as the config doesn't say)"
    return f"{name} {getattr(schedule, name):g}{note}"
