"""What both processes do around their work: logs, exit codes, the metrics server."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import PurePosixPath

from prometheus_client import CollectorRegistry

from services.exits import Exit
from services.settings import ProcessSettings, SettingsType, read_settings
from tandem.errors import (
    AttemptSupersededError,
    ConfigError,
    InputError,
    StoreError,
    TrainingError,
)
from tandem.telemetry.health import Health
from tandem.telemetry.logs import LogFields, configure_logging
from tandem.telemetry.server import MetricsServer, serve

logger = logging.getLogger(__name__)


def settings_or_exit(
    settings_class: type[SettingsType],
    *,
    program: str,
    prefix: str,
    arguments: Sequence[str],
    environment: Mapping[str, str],
) -> SettingsType:
    """The settings; or the mistake in them on standard error, and exit code 2."""
    try:
        return read_settings(
            settings_class,
            program=program,
            prefix=prefix,
            arguments=arguments,
            environment=environment,
        )
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(Exit.BAD_INPUT)


def begin_logging(settings: ProcessSettings, *, process: str) -> LogFields:
    """Log lines that carry process and run; the fields are the caller's to update."""
    fields = LogFields(process=process, run=PurePosixPath(settings.run.rstrip("/")).name)
    configure_logging(format=settings.log_format, fields=fields, level=settings.log_level)
    return fields


@contextmanager
def metrics_server(
    registry: CollectorRegistry, health: Health, *, host: str, port: int
) -> Iterator[MetricsServer]:
    """Serves `/metrics` and `/healthz` for the duration of the block."""
    server = serve(registry, health, host=host, port=port)
    logger.info("metrics on http://%s:%d/metrics, health on /healthz", host, server.port)
    try:
        yield server
    finally:
        server.close()


def exit_code_of(work: Callable[[], Exit]) -> Exit:
    """Runs the work; turns our own exceptions into one log message and an exit code."""
    try:
        return work()
    except InputError as error:
        logger.error("%s", error)  # the message is for the user, a trace is not
        return Exit.BAD_INPUT
    except TrainingError as error:
        logger.error("%s", error)
        return Exit.TRAINING_FAILED
    except AttemptSupersededError as error:
        logger.warning("%s", error)
        return Exit.SUPERSEDED
    except (StoreError, OSError) as error:  # a disk that is full or gone, records that are damaged
        logger.error("storage failed: %s", error)
        return Exit.UNEXPECTED
    except KeyboardInterrupt:
        logger.error("interrupted in the middle of a step; the newest checkpoint is safe")
        return Exit.INTERRUPTED
    except Exception:
        logger.exception("unexpected error")
        return Exit.UNEXPECTED
