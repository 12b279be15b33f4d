"""Claims the run's next attempt and restores what it resumes from."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

from services.folders import own_folder
from services.signals import StopRequest
from services.trainer.experiment import Experiment
from services.trainer.ownership import holder_of, owner_of, process_is_alive
from services.trainer.scratch import scratch_folder
from services.trainer.settings import TrainerSettings
from tandem.checkpoints import names
from tandem.checkpoints.attempts import Attempt
from tandem.checkpoints.claims import claim_attempt
from tandem.checkpoints.commits import Commit
from tandem.checkpoints.fetching import fetch_checkpoint
from tandem.checkpoints.heartbeats import TRAINER, HeartbeatRecord, read_heartbeat
from tandem.checkpoints.lines import read_line
from tandem.checkpoints.names import CheckpointId
from tandem.checkpoints.objects import ObjectStore
from tandem.checkpoints.runs import ensure_run
from tandem.checkpoints.surroundings import Surroundings
from tandem.config.digests import config_diff, config_digest
from tandem.config.pipeline import write_pipeline
from tandem.config.text import parse_text
from tandem.errors import (
    CheckpointDamagedError,
    ObjectNotFoundError,
    RunConflictError,
    StoreError,
)
from tandem.protos.pipeline_pb2 import TrainEvalPipelineConfig
from tandem.training.states import resume

logger = logging.getLogger(__name__)


def preload(
    store: ObjectStore,
    settings: TrainerSettings,
    experiment: Experiment,
    *,
    on_damage: Callable[[], None],
) -> Commit | None:
    """Restores the newest sound checkpoint; writes nothing, so that a misfit leaves no trace.

    Args:
        store: the run's.
        settings: of this process.
        experiment: whose state is restored.
        on_damage: told of each checkpoint that is found damaged.

    Returns:
        Its commit; None when the run has no checkpoint yet.

    Raises:
        ConfigError: the config describes another model than the one that was saved.
        RunConflictError: the run has checkpoints, and none of them is sound.
    """
    line = read_line(store)
    for checkpoint in reversed(line.readable):
        try:
            return _load(store, checkpoint, settings, experiment, reader=None)
        except CheckpointDamagedError as error:
            logger.error("%s; going back to the newest sound one", error)
            on_damage()
        except ObjectNotFoundError:
            continue  # retired meanwhile by an attempt that still runs
    if line.checkpoints:
        raise RunConflictError(
            f"none of the {len(line.checkpoints)} checkpoints of {store.location} is sound "
            f"(the newest is {line.newest}): bring their files back, or give a new run folder"
        )
    return None


def claim(
    store: ObjectStore,
    settings: TrainerSettings,
    experiment: Experiment,
    *,
    loaded: Commit | None,
    image: str,
    on_damage: Callable[[], None],
    stop: StopRequest,
) -> tuple[Attempt, Commit | None]:
    """Claims the next attempt; what it resumes from is restored then.

    Args:
        store: the run's.
        settings: of this process.
        experiment: whose state is restored.
        loaded: what `preload` restored.
        image: the software, for people.
        on_damage: told of each checkpoint that is found damaged.
        stop: ends a wait for another owner's attempt, by StopRequestedError.
    """
    ensure_run(store)
    host, pid = socket.gethostname(), os.getpid()
    owner = owner_of(
        stated=settings.owner,
        previous=read_line(store).newest_attempt,
        host=host,
        pid=pid,
        is_alive=process_is_alive,
    )
    while True:
        attempt = claim_attempt(
            store,
            owner=owner,
            holder=holder_of(host=host, pid=pid),
            image=image,
            config_text=write_pipeline(experiment.config),
            config_digest=config_digest(experiment.config),
            config_diff=lambda before: _diff(before, experiment.config),
            takeover=settings.takeover,
            lost_steps=_lost_steps(store),
            retention=settings.retention,
            eval_sets=experiment.eval_sets,
            surroundings=Surroundings(sleep=stop.sleep),
        )
        resumed = loaded.checkpoint if loaded else None
        if attempt.resumed_from == resumed:
            return attempt, loaded
        if attempt.resumed_from is None:
            raise StoreError(f"checkpoint {resumed} of {store.location} was there a moment ago")
        try:
            loaded = _load(store, attempt.resumed_from, settings, experiment, reader=attempt.holder)
        except CheckpointDamagedError as error:
            logger.warning("%s; it is in quarantine now", error)
            on_damage()
        else:
            return attempt, loaded


def lost_steps(
    before: Attempt, resumed_from: CheckpointId | None, *, beat: HeartbeatRecord | None
) -> int:
    """How many steps an attempt trained after the checkpoint that the next one goes on from.

    Args:
        before: the attempt.
        resumed_from: what the next one goes on from; None: from the beginning.
        beat: the trainer's last one. A forerunner's says nothing of this attempt.
    """
    if beat is None or beat.attempt != before.number or beat.step is None:
        return 0
    return max(0, beat.step - (resumed_from.step if resumed_from else 0))


def _lost_steps(store: ObjectStore) -> Callable[[Attempt, CheckpointId | None], int]:
    return lambda before, resumed_from: lost_steps(
        before, resumed_from, beat=read_heartbeat(store, TRAINER)
    )


def _load(
    store: ObjectStore,
    checkpoint: CheckpointId,
    settings: TrainerSettings,
    experiment: Experiment,
    *,
    reader: str | None,
) -> Commit:
    if store.local_path(names.RUN) is not None:  # read in place
        return _fetched(store, checkpoint, Path(), experiment, reader=reader)
    with own_folder(scratch_folder(store, settings.scratch_dir), prefix=".fetched-") as folder:
        return _fetched(store, checkpoint, folder, experiment, reader=reader)


def _fetched(
    store: ObjectStore,
    checkpoint: CheckpointId,
    folder: Path,
    experiment: Experiment,
    *,
    reader: str | None,
) -> Commit:
    fetched = fetch_checkpoint(store, checkpoint, folder, reader=reader)
    resume(experiment.state, fetched.prefix)
    return fetched.commit


def _diff(before: str, config: TrainEvalPipelineConfig) -> Sequence[str]:
    old = parse_text(before, TrainEvalPipelineConfig, source="config of the attempt before")
    return config_diff(old, config)
