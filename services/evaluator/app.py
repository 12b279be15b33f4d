"""The evaluator's composition root: settings to parts, a watch, an exit code."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import socket
import tempfile
from pathlib import Path

from prometheus_client import CollectorRegistry

from services.clusters import own_namespace, reporting
from services.evaluator.ended import Aftermath
from services.evaluator.jobs import JobWatch
from services.evaluator.loop import Evaluator
from services.evaluator.projections import BEST_METRIC, Projections
from services.evaluator.recording import Recorder
from services.evaluator.settings import EvaluatorSettings
from services.evaluator.sources import (
    AdoptedSource,
    RunSource,
    Source,
    refuse_inner_folder,
    refuse_missing_folder,
)
from services.evaluator.telling import BestTeller
from services.evaluator.watch import Ending
from services.events import EventFolder
from services.exits import Exit
from services.folders import own_folder
from services.processes import metrics_server
from services.signals import StopRequest
from tandem.checkpoints import names
from tandem.checkpoints.adopted import UNVERIFIED
from tandem.checkpoints.heartbeats import Heartbeat, evaluator_process
from tandem.checkpoints.names import events_folder
from tandem.checkpoints.objects import ObjectStore
from tandem.checkpoints.opening import open_store
from tandem.checkpoints.runs import ensure_run, foreign_checkpoint_files
from tandem.config.pipeline import load_pipeline
from tandem.config.preflight import check_pipeline
from tandem.errors import ConfigError, RunConflictError
from tandem.evaluation.build import build_plan
from tandem.kube.objects import Kind, Subject
from tandem.telemetry.health import Health
from tandem.telemetry.metrics import EvaluatorMetrics
from tandem.training.states import load_tensors

logger = logging.getLogger(__name__)

_EXITS = {
    Ending.COMPLETED: Exit.FINISHED,
    Ending.TRAINER_FAILED: Exit.TRAINER_FAILED,
    Ending.TIMED_OUT: Exit.TIMED_OUT,
    Ending.STOPPED: Exit.SAVED_RESUME_ME,
}


def run_evaluator(settings: EvaluatorSettings, stop: StopRequest) -> Exit:
    """Watches a run to its end.

    Raises:
        InputError: before anything was written.
    """
    registry = CollectorRegistry()
    health = Health(patience_seconds=settings.wait_interval + settings.poll_interval)
    health.beat(phase="starting", patience_seconds=1800.0)
    metrics = EvaluatorMetrics(registry)
    subject = Subject(Kind.DEPLOYMENT, settings.deployment) if settings.deployment else None
    with (
        metrics_server(registry, health, host=settings.metrics_host, port=settings.metrics_port),
        own_folder(Path(tempfile.gettempdir()), prefix="tandem-evaluator-") as scratch,
        own_namespace(settings, component="tandem-evaluator") as namespace,
        reporting(namespace, subject) as reporter,
    ):
        results = open_store(settings.run, credentials_seconds=settings.credentials_seconds)
        name = f"{settings.name} on {socket.gethostname()}/{os.getpid()}"
        source = _source(settings, results, reader=name, scratch=scratch / "checkpoint")
        config = load_pipeline(settings.config, overrides=settings.override)
        plan = build_plan(config, check_pipeline(config, for_training=False))
        ensure_run(results)
        heartbeat = Heartbeat(results, evaluator_process(settings.name))
        trainer_job = JobWatch(namespace, settings.trainer_job)
        on_best = BestTeller(reporter, metric=BEST_METRIC)
        reporter.event("Started", f"watching {source.location} for checkpoints")
        reporter.annotate(run=settings.run)
        with contextlib.ExitStack() as events:
            evaluator = Evaluator(
                source=source,
                results=results,
                load=functools.partial(load_tensors, plan.tensors),
                tasks=plan.tasks,
                projections={
                    task.eval_set.name: Projections(
                        results,
                        events.enter_context(
                            EventFolder(
                                results,
                                events_folder(task.eval_set.name),
                                scratch=scratch,
                            )
                        ),
                        eval_set=task.eval_set,
                        metrics=metrics,
                        on_best=on_best,
                    )
                    for task in plan.tasks
                },
                recorder=Recorder(results, source, name=name),
                heartbeat=heartbeat,
                metrics=metrics,
                health=health,
                policy=settings.policy,
                scratch=scratch / "checkpoint",
                stop=stop,
                reporter=reporter,
                trainer_job=trainer_job,
            )
            logger.info(
                "watching %s for checkpoints; eval sets: %s",
                source.location,
                ", ".join(task.eval_set.name or "(unnamed)" for task in plan.tasks),
            )
            aftermath = Aftermath(
                settings,
                namespace=namespace,
                reporter=reporter,
                metrics=metrics,
                heartbeat=heartbeat,
                health=health,
                stop=stop,
            )
            while True:
                decided = evaluator.watch(
                    wait_interval=settings.wait_interval, poll_interval=settings.poll_interval
                )
                aftermath.tell(decided, location=source.location, job=trainer_job.state)
                if not aftermath.stays_for_news(decided, evaluator.has_news):
                    break
    return _EXITS[decided]


def _source(
    settings: EvaluatorSettings, results: ObjectStore, *, reader: str, scratch: Path
) -> Source:
    """The place to read checkpoints from, as the settings say.

    Raises:
        ConfigError: `adopt` is asked for where there is nothing to adopt, or the folder is a part
            of a run.
        RunConflictError: the folder holds another program's checkpoints, and nobody says `adopt`.
    """
    if settings.checkpoint_dir is None:
        if settings.adopt:
            raise ConfigError(
                "adopt is set without checkpoint_dir: name the folder of checkpoints to adopt in "
                "checkpoint_dir, and in run the one that results go to"
            )
        store = results
    else:
        store = open_store(
            settings.checkpoint_dir, credentials_seconds=settings.credentials_seconds
        )
    listed = store.list("")
    refuse_inner_folder(store, listed)
    if settings.adopt:
        refuse_missing_folder(store, listed)
        if names.RUN in listed:
            raise ConfigError(
                f"adopt is set, but {store.location} is a run, whose checkpoints are verified as "
                "they are: leave adopt out"
            )
        logger.warning(
            "%s is adopted as it is; not verified: %s", store.location, "; ".join(UNVERIFIED)
        )
        return AdoptedSource(
            store,
            results=results,
            reader=reader,
            scratch=scratch,
            lease_seconds=settings.lease_seconds,
        )
    if store is not results and foreign_checkpoint_files(listed):
        raise RunConflictError(
            f"{store.location} holds checkpoints that no run of Tandem wrote: set adopt to "
            "evaluate them as they are"
        )
    return RunSource(
        store,
        results=results,
        reader=reader,
        scratch=scratch,
        lease_seconds=settings.lease_seconds,
    )
