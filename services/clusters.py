"""The cluster that a process runs in, as far as it is told of one."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator

from services.settings import ClusterSettings
from tandem.errors import (
    AttemptSupersededError,
    BucketMissingError,
    ClusterRefusedError,
    DataEndedError,
    DataError,
    InputError,
    LabelMapError,
    RecordError,
    RunConflictError,
    StoreError,
    StoreRefusedError,
    TrainingError,
)
from tandem.kube.objects import Namespace, Subject
from tandem.kube.reporting import Reporter

logger = logging.getLogger(__name__)

_CLOSING_SECONDS = 3.0


@contextlib.contextmanager
def own_namespace(settings: ClusterSettings, *, component: str) -> Iterator[Namespace | None]:
    """The namespace of this pod; None outside of a cluster, which is said once."""
    if settings.namespace is None:
        yield None
        return
    # The official client takes half a second to import, which others do without.
    from tandem.kube.api import own_namespace as open_namespace  # noqa: PLC0415

    with contextlib.ExitStack() as stack:
        namespace: Namespace | None = None
        try:
            namespace = stack.enter_context(
                open_namespace(
                    settings.namespace, component=component, instance=settings.pod or component
                )
            )
        except ClusterRefusedError as error:
            logger.warning("going on without the cluster: %s", error)
        yield namespace


@contextlib.contextmanager
def reporting(
    namespace: Namespace | None,
    subject: Subject | None,
    *,
    closing_seconds: Callable[[], float] = lambda: _CLOSING_SECONDS,
) -> Iterator[Reporter]:
    """A reporter about an object; what ends the block before its time is told as a warning."""
    with Reporter(namespace, subject, closing_seconds=closing_seconds) as reporter:
        try:
            yield reporter
        except Exception as error:
            reporter.event(_reason_of(error), str(error) or type(error).__name__, is_warning=True)
            reporter.annotate(phase="failed")
            raise


def _reason_of(error: Exception) -> str:
    for kind, reason in (
        ((DataError, LabelMapError, RecordError, DataEndedError), "BadData"),
        ((StoreRefusedError, BucketMissingError), "StorageFailed"),
        (RunConflictError, "RunConflict"),
        (InputError, "BadInput"),
        (TrainingError, "TrainingFailed"),
        (AttemptSupersededError, "Superseded"),
        ((StoreError, OSError), "StorageFailed"),
    ):
        if isinstance(error, kind):
            return reason
    return "UnexpectedError"
