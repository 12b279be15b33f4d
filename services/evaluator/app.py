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

from services.evaluator.loop import Evaluator
from services.evaluator.projections import Projections
from services.evaluator.recording import Recorder
from services.evaluator.settings import EvaluatorSettings
from services.evaluator.sources import AdoptedSource, RunSource, Source
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
    with (
        metrics_server(registry, health, host=settings.metrics_host, port=settings.metrics_port),
        own_folder(Path(tempfile.gettempdir()), prefix="tandem-evaluator-") as scratch,
    ):
        results = open_store(settings.run)
        name = f"{settings.name} on {socket.gethostname()}/{os.getpid()}"
        source = _source(settings, results, reader=name, scratch=scratch / "checkpoint")
        config = load_pipeline(settings.config, overrides=settings.override)
        plan = build_plan(config, check_pipeline(config, for_training=False))
        ensure_run(results)
        heartbeat = Heartbeat(results, evaluator_process(settings.name))
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
                    )
                    for task in plan.tasks
                },
                recorder=Recorder(results, source, name=name),
                heartbeat=heartbeat,
                metrics=metrics,
                health=health,
                policy=settings.policy,
                scratch=scratch / "checkpoint",
                lease_seconds=settings.lease_seconds,
                stop=stop,
            )
            logger.info(
                "watching %s for checkpoints; eval sets: %s",
                source.location,
                ", ".join(task.eval_set.name or "(unnamed)" for task in plan.tasks),
            )
            decided = evaluator.watch(
                wait_interval=settings.wait_interval, poll_interval=settings.poll_interval
            )
        logger.info("%s%s", decided.value, _because(decided, settings))
        metrics.set_phase("done")
        heartbeat.beat("done", None, ending=decided.value)
        _stay(settings, decided, stop, health)
    return _EXITS[decided]


def _source(
    settings: EvaluatorSettings, results: ObjectStore, *, reader: str, scratch: Path
) -> Source:
    """The place to read checkpoints from, as the settings say.

    Raises:
        ConfigError: `adopt` is asked for where there is nothing to adopt.
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
        store = open_store(settings.checkpoint_dir)
    listed = store.list("")
    if settings.adopt:
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


def _because(decided: Ending, settings: EvaluatorSettings) -> str:
    if decided is Ending.TIMED_OUT:
        return (
            f": no new checkpoint and no sign of life of the trainer for "
            f"{settings.wait_interval:g} s"
        )
    if decided is Ending.TRAINER_FAILED:
        return ": the trainer ended as failed; what it left is evaluated"
    return ""


def _stay(settings: EvaluatorSettings, decided: Ending, stop: StopRequest, health: Health) -> None:
    """Goes on serving metrics where an exit would only lead to a restart."""
    if settings.on_end != "stay" or decided is Ending.STOPPED:
        return
    logger.info("staying up to serve metrics, as on_end says")
    while not stop():
        health.beat(phase=decided.value, patience_seconds=2 * _STAY_LOOK_SECONDS)
        stop.wait(_STAY_LOOK_SECONDS)
