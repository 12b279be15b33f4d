"""The evaluator's composition root: settings to parts, a watch, an exit code."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import tensorflow as tf
from prometheus_client import CollectorRegistry

from services.clusters import own_namespace, reporting
from services.evaluator.ended import Aftermath
from services.evaluator.jobs import JobWatch
from services.evaluator.loop import LOOKING, STAYING, Evaluator
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
from services.stores import Stores
from services.vitals import Vitals, software
from services.watchdog import Watchdog, Where
from tandem.checkpoints import names
from tandem.checkpoints.adopted import UNVERIFIED
from tandem.checkpoints.heartbeats import Fact, Heartbeat, evaluator_process
from tandem.checkpoints.measuring import principal_of
from tandem.checkpoints.names import events_folder
from tandem.checkpoints.objects import ObjectStore
from tandem.checkpoints.runs import ensure_run, foreign_checkpoint_files
from tandem.config.pipeline import load_pipeline
from tandem.config.preflight import check_pipeline
from tandem.errors import ConfigError, RunConflictError, TandemError
from tandem.evaluation.build import build_plan
from tandem.kube.objects import Kind, Subject
from tandem.telemetry.evaluator_metrics import EvaluatorMetrics
from tandem.telemetry.health import Health
from tandem.telemetry.process_metrics import ProcessMetrics
from tandem.training.states import load_tensors

logger = logging.getLogger(__name__)

_EXITS = {
    Ending.COMPLETED: Exit.FINISHED,
    Ending.TRAINER_FAILED: Exit.TRAINER_FAILED,
    Ending.TIMED_OUT: Exit.TIMED_OUT,
    Ending.STOPPED: Exit.SAVED_RESUME_ME,
}


_LAST_WORD_SECONDS = 5.0


def run_evaluator(
    settings: EvaluatorSettings, stop: StopRequest, *, image: str | None = None
) -> Exit:
    """Watches a run to its end.

    Args:
        settings: of the process.
        stop: the wish to stop.
        image: the container's, if there is one.

    Raises:
        InputError: before anything was written.
    """
    registry = CollectorRegistry()
    health = Health(patience_seconds=settings.wait_interval + settings.poll_interval)
    health.beat(phase="starting", patience_seconds=1800.0)
    metrics, process_metrics = EvaluatorMetrics(registry), ProcessMetrics(registry)
    runs = software(image=image, tensorflow=tf.__version__)
    process_metrics.show_software(**runs._asdict())
    stores = Stores(
        registry,
        settings.run,
        settings.checkpoint_dir,
        credentials_seconds=settings.credentials_seconds,
    )
    subject = Subject(Kind.DEPLOYMENT, settings.deployment) if settings.deployment else None
    with (
        metrics_server(registry, health, host=settings.metrics_host, port=settings.metrics_port),
        own_folder(Path(tempfile.gettempdir()), prefix="tandem-evaluator-") as scratch,
        own_namespace(settings, component="tandem-evaluator") as namespace,
        reporting(namespace, subject) as reporter,
    ):
        results = stores.open(settings.run)
        vitals = Vitals(
            runs, stores.requests, host=settings.pod, principal=lambda: principal_of(results)
        )
        name = f"{settings.name} on {socket.gethostname()}/{os.getpid()}"
        source = _source(settings, stores, results, reader=name, scratch=scratch / "checkpoint")
        config = load_pipeline(settings.config, overrides=settings.override)
        plan = build_plan(config, check_pipeline(config, for_training=False))
        ensure_run(results)
        process = evaluator_process(settings.name)
        facts: dict[str, Fact] = {
            "policy": settings.policy,
            "poll_interval": settings.poll_interval,
            "lag_budget_seconds": settings.lag_budget,
        }
        heartbeat = Heartbeat(results, process, more_facts=lambda: {**facts, **vitals.facts()})
        where = Where(LOOKING)
        metrics.begin(
            [task.eval_set.name for task in plan.tasks], lag_budget_seconds=settings.lag_budget
        )
        trainer_job = JobWatch(namespace, settings.trainer_job)
        on_best = BestTeller(reporter, metric=BEST_METRIC)
        reporter.event("Started", f"watching {source.location} for checkpoints")
        reporter.annotate(run=settings.run)
        with contextlib.ExitStack() as events:
            events.enter_context(
                _word_of_failure(lambda: heartbeat.beat("failed", health.report().step), vitals)
            )
            events.enter_context(
                Watchdog(results, process, where=where, health=health, host=vitals.host)
            )
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
                where=where,
                on_failure=vitals.note,
                on_damage=process_metrics.count_verify_failure,
                committed_at=source.committed_at,
                facts=facts,
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
                where.at = STAYING
                aftermath.tell(decided, location=source.location, job=trainer_job.state)
                if not aftermath.stays_for_news(decided, evaluator.has_news):
                    break
    return _EXITS[decided]


@contextlib.contextmanager
def _word_of_failure(beat: Callable[[], object], vitals: Vitals) -> Iterator[None]:
    """Leaves word in the run folder of what ends the process before its time, if that can be."""
    try:
        yield
    except Exception as error:
        vitals.note(error)
        # A store that hangs must not keep the process from ending.
        thread = threading.Thread(target=_attempted, args=[beat], daemon=True)
        thread.start()
        thread.join(_LAST_WORD_SECONDS)
        raise


def _attempted(beat: Callable[[], object]) -> None:
    try:
        beat()
    except (TandemError, OSError) as error:
        logger.warning("the heartbeat was not written: %s", error)


def _source(
    settings: EvaluatorSettings,
    stores: Stores,
    results: ObjectStore,
    *,
    reader: str,
    scratch: Path,
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
        store = stores.open(settings.checkpoint_dir)
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
