"""Reads what the demo shows from the run folder and the processes' logs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from services.ctl.demo.view import LOG_LINES, Facts, Score
from tandem.checkpoints.heartbeats import (
    TRAINER,
    HeartbeatRecord,
    evaluator_process,
    read_heartbeats,
)
from tandem.checkpoints.ledger import EntryOutcome, read_ledger
from tandem.checkpoints.lines import read_line
from tandem.checkpoints.objects import ObjectStore

EVALUATOR_NAME = "main"


def read_facts(
    store: ObjectStore,
    *,
    logs: Mapping[str, Path],
    last_step: int,
    elapsed_seconds: float,
    not_of_ours: Collection[str] = (),
) -> Facts:
    """The run at this moment.

    Args:
        store: the run's.
        logs: log file by process.
        last_step: where training ends.
        elapsed_seconds: since the demo began.
        not_of_ours: nonces of heartbeats that were there before the demo began.
    """
    line = read_line(store)
    beats = {
        process: beat
        for process, beat in read_heartbeats(store).items()
        if beat.nonce not in not_of_ours
    }
    trainer, evaluator = beats.get(TRAINER), beats.get(evaluator_process(EVALUATOR_NAME))
    return Facts(
        elapsed_seconds=elapsed_seconds,
        trainer_phase=trainer.phase if trainer else None,
        step=(trainer.step if trainer else None) or (line.newest.step if line.newest else 0),
        last_step=last_step,
        loss=_number(trainer, "total_loss"),
        steps_per_second=_number(trainer, "steps_per_second"),
        eta_seconds=_number(trainer, "eta_seconds"),
        evaluator_phase=evaluator.phase if evaluator else None,
        evaluating=evaluator.step if evaluator else None,
        checkpoints=[checkpoint.step for checkpoint in line.checkpoints],
        scores=[
            Score(entry.checkpoint.step, dict(entry.metrics))
            for entry in sorted(read_ledger(store), key=lambda entry: entry.checkpoint)
            if entry.outcome is EntryOutcome.SCORED
        ],
        log=newest_lines(logs),
    )


def _number(beat: HeartbeatRecord | None, fact: str) -> float | None:
    value = beat.facts.get(fact) if beat else None
    return float(value) if isinstance(value, int | float) else None


def newest_lines(logs: Mapping[str, Path], *, most: int = LOG_LINES) -> list[str]:
    """The newest lines of all logs together, by the time at their start, with the process named."""
    lines = []
    for process, path in logs.items():
        text = path.read_text(errors="replace") if path.exists() else ""
        for number, row in enumerate(text.splitlines()[-most:]):
            # "2026-03-01 12:00:00Z INFO    message": the date is of no interest here.
            time, _, message = row[11:].partition(" ")
            lines.append((time, process, number, message))
    lines.sort(key=lambda entry: (entry[0], entry[2]))
    return [f"{time} {process:9} {message}" for time, process, _, message in lines[-most:]]
