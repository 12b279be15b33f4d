"""The trainer's process: preflight, what to begin from, and the claim of an attempt."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

import tensorflow as tf
from prometheus_client import CollectorRegistry

from services.clusters import own_namespace, reporting
from services.exits import Exit
from services.processes import metrics_server
from services.signals import StopRequest, StopRequestedError
from services.stores import Stores
from services.trainer.attempt import START_PATIENCE_SECONDS, ClaimedAttempt
from services.trainer.claiming import claim, preload
from services.trainer.experiment import Experiment, load_experiment
from services.trainer.keeping import refuse_rules_without_effect
from services.trainer.scratch import (
    check_scratch,
    scratch_folder,
)
from services.trainer.settings import TrainerSettings
from services.vitals import Vitals, software
from tandem.checkpoints import names
from tandem.checkpoints.measuring import principal_of
from tandem.checkpoints.runs import refuse_foreign_folder
from tandem.kube.objects import Kind, Subject
from tandem.telemetry.health import Health
from tandem.telemetry.logs import LogFields
from tandem.telemetry.process_metrics import ProcessMetrics
from tandem.telemetry.trainer_metrics import TrainerMetrics
from tandem.training.restore import RestoreReport

logger = logging.getLogger(__name__)

# Until the first step says how long steps take.
_STEP_PATIENCE_SECONDS = 300.0

# How long the cluster may be told how it ended; after a stop the time is short.
_LAST_WORDS_SECONDS = 5.0
_LATE_WORDS_SECONDS = 1.0


def run_trainer(
    settings: TrainerSettings,
    stop: StopRequest,
    log_fields: LogFields,
    *,
    image: str | None = None,
    began: float | None = None,
) -> Exit:
    """Trains one attempt of a run.

    Args:
        settings: of the process.
        stop: the wish to stop.
        log_fields: told of each step.
        image: the container's, if there is one.
        began: when the process did, by the monotonic clock; None: now.

    Raises:
        InputError: before anything was written to the run folder.
        TrainingError: training can't go on; the attempt is recorded as failed.
        AttemptSupersededError: a newer attempt has taken over.
    """
    registry = CollectorRegistry()
    health = Health(patience_seconds=_STEP_PATIENCE_SECONDS)
    health.beat(phase="starting", patience_seconds=START_PATIENCE_SECONDS)
    began = time.monotonic() if began is None else began
    metrics, process_metrics = TrainerMetrics(registry, began=began), ProcessMetrics(registry)
    runs = software(image=image, tensorflow=tf.__version__)
    process_metrics.show_software(**runs._asdict())
    stores = Stores(registry, settings.run, credentials_seconds=settings.credentials_seconds)
    subject = Subject(Kind.JOB, settings.job) if settings.job else None
    with (
        metrics_server(registry, health, host=settings.metrics_host, port=settings.metrics_port),
        own_namespace(settings, component="tandem-trainer") as namespace,
        reporting(namespace, subject, closing_seconds=_seconds_for_last_words(stop)) as reporter,
    ):
        store = stores.open(settings.run)
        vitals = Vitals(
            runs, stores.requests, host=settings.pod, principal=lambda: principal_of(store)
        )
        refuse_foreign_folder(store)
        if store.local_path(names.RUN) is None or settings.scratch_dir is not None:
            check_scratch(scratch_folder(store, settings.scratch_dir))
        experiment = load_experiment(settings)
        refuse_rules_without_effect(settings.retention, experiment.config)
        on_damage = process_metrics.count_verify_failure
        loaded = preload(store, settings, experiment, on_damage=on_damage)
        report = None if loaded else _begin_fresh(experiment)
        try:
            if stop():
                raise StopRequestedError
            attempt, commit = claim(
                store,
                settings,
                experiment,
                loaded=loaded,
                image=runs.image,
                on_damage=on_damage,
                stop=stop,
            )
        except StopRequestedError:
            logger.info("stopped before the first step; nothing was written")
            return Exit.SAVED_RESUME_ME
        trainer = ClaimedAttempt(
            settings,
            store,
            experiment,
            attempt,
            commit,
            metrics=metrics,
            health=health,
            stop=stop,
            log_fields=log_fields,
            reporter=reporter,
            vitals=vitals,
            began=began,
        )
        return trainer.run(report)


def _seconds_for_last_words(stop: StopRequest) -> Callable[[], float]:
    """How long the cluster may be told how it ended: after a stop the time is short."""
    return lambda: _LATE_WORDS_SECONDS if stop() else _LAST_WORDS_SECONDS


def _begin_fresh(experiment: Experiment) -> RestoreReport | None:
    """Checks all records and loads the fine-tune checkpoint: what a resumed run has behind it."""
    check = experiment.data(first_step=0).check()
    check.raise_for_problems()
    for note in check.notes():
        logger.warning("training data: %s", note)
    report = experiment.fine_tune()
    if report is not None:
        logger.info("%s", report.render())
    return report
