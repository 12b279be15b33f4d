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
from tandem.errors import ClusterError, ClusterRefusedError, ConfigError, RunConflictError
from tandem.evaluation.build import build_plan
from tandem.kube.jobs import JobPhase, JobState
from tandem.kube.objects import Kind, Namespace, Subject
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
_STAY_LOOK_SECONDS = 3600.0


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
            decided = evaluator.watch(
                wait_interval=settings.wait_interval, poll_interval=settings.poll_interval
            )
        why = _because(decided, settings, trainer_job.state)
        logger.info("%s%s", decided.value, why)
        metrics.set_phase("done")
        heartbeat.beat("done", None, ending=decided.value)
        reporter.event(
            decided.value,
            f"the evaluation of {source.location} is over{why}",
            is_warning=decided in (Ending.TRAINER_FAILED, Ending.TIMED_OUT),
        )
        reporter.annotate(phase="done", ending=decided.value)
        if settings.on_end != "exit" and decided is not Ending.STOPPED:
            if settings.on_end == "scale-to-zero":
                _scale_to_zero(namespace, settings.deployment)
            _stay(decided, stop, health)
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


def _because(decided: Ending, settings: EvaluatorSettings, job: JobState | None) -> str:
    if decided is Ending.TIMED_OUT:
        return (
            f": no new checkpoint and no sign of life of the trainer for "
            f"{settings.wait_interval:g} s"
        )
    if decided is Ending.TRAINER_FAILED:
        words = ["the trainer ended as failed; what it left is evaluated"]
        if job is not None and job.phase is JobPhase.FAILED:
            words.append(f"its Job {settings.trainer_job}: {job.reason}: {job.message}")
        return ": " + "; ".join(words)
    return ""


def _scale_to_zero(namespace: Namespace | None, deployment: str | None) -> None:
    """Has the Deployment end this pod, and start no other; the signal for it comes soon after."""
    try:
        if namespace is None or deployment is None:
            raise ClusterRefusedError("this process knows of no cluster")
        namespace.scale(deployment, 0)
    except ClusterError as error:
        logger.warning("staying up, as the Deployment can't be scaled to zero: %s", error)
    else:
        logger.info("Deployment %s is scaled to zero", deployment)


def _stay(decided: Ending, stop: StopRequest, health: Health) -> None:
    """Goes on serving metrics where an exit would only lead to a restart."""
    logger.info("staying up to serve metrics until a signal comes")
    while not stop():
        health.beat(phase=decided.value, patience_seconds=2 * _STAY_LOOK_SECONDS)
        stop.wait(_STAY_LOOK_SECONDS)
