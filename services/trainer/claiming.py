"""Claims the run's next attempt and restores what it resumes from."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Sequence
from pathlib import Path

import tensorflow as tf

import tandem
from services.signals import StopRequest
from services.trainer.experiment import Experiment
from services.trainer.ownership import owner_of, process_is_alive
from services.trainer.settings import TrainerSettings
from tandem.checkpoints.attempts import Attempt
from tandem.checkpoints.claims import claim_attempt
from tandem.checkpoints.commits import Commit
from tandem.checkpoints.fetching import fetch_checkpoint
from tandem.checkpoints.lines import read_line
from tandem.checkpoints.names import CheckpointId
from tandem.checkpoints.objects import ObjectStore
from tandem.checkpoints.runs import ensure_run
from tandem.checkpoints.surroundings import Surroundings
from tandem.config.digests import config_diff, config_digest
from tandem.config.pipeline import write_pipeline
from tandem.config.text import parse_text
from tandem.errors import CheckpointDamagedError, ObjectNotFoundError
from tandem.protos.pipeline_pb2 import TrainEvalPipelineConfig
from tandem.training.states import resume

logger = logging.getLogger(__name__)


def claim(
    store: ObjectStore, settings: TrainerSettings, experiment: Experiment, stop: StopRequest
) -> tuple[Attempt, Commit | None]:
    """Claims the next attempt and restores what it resumes from, sound or the next older one."""
    ensure_run(store)
    host, pid = socket.gethostname(), os.getpid()
    newest = read_line(store).newest_attempt
    owner = owner_of(
        stated=settings.owner,
        previous=newest.owner if newest else None,
        host=host,
        pid=pid,
        is_alive=process_is_alive,
    )
    loaded = _preload(store, settings, experiment)
    while True:
        attempt = claim_attempt(
            store,
            owner=owner,
            holder=f"{host}/{pid}",
            image=f"tandem {tandem.__version__}, tensorflow {tf.__version__}",
            config_text=write_pipeline(experiment.config),
            config_digest=config_digest(experiment.config),
            config_diff=lambda before: _diff(before, experiment.config),
            takeover=settings.takeover,
            surroundings=Surroundings(sleep=stop.sleep),
        )
        if attempt.resumed_from is None:
            return attempt, None
        if loaded is not None and loaded.checkpoint == attempt.resumed_from:
            return attempt, loaded
        try:
            return attempt, _load(
                store, attempt.resumed_from, settings, experiment, reader=attempt.holder
            )
        except CheckpointDamagedError as error:
            logger.error("%s; going back to the newest sound one", error)


def _preload(
    store: ObjectStore, settings: TrainerSettings, experiment: Experiment
) -> Commit | None:
    """Loads what will most likely be resumed, so that a config that doesn't fit claims nothing."""
    newest = read_line(store).newest_sound
    if newest is None:
        return None
    try:
        return _load(store, newest, settings, experiment, reader=None)
    except (CheckpointDamagedError, ObjectNotFoundError):
        return None  # to be found again, and dealt with, once an attempt is claimed


def _load(
    store: ObjectStore,
    checkpoint: CheckpointId,
    settings: TrainerSettings,
    experiment: Experiment,
    *,
    reader: str | None,
) -> Commit:
    folder = Path(settings.run) / ".fetched"
    fetched = fetch_checkpoint(store, checkpoint, folder, reader=reader)
    resume(experiment.state, fetched.prefix)
    return fetched.commit


def _diff(before: str, config: TrainEvalPipelineConfig) -> Sequence[str]:
    old = parse_text(before, TrainEvalPipelineConfig, source="config of the attempt before")
    return config_diff(old, config)
