"""A fake GCS on the node, and experiments that use it."""

from collections.abc import Iterator

import pytest

from tests.cluster.experiments import Experiment
from tests.rig.cluster import NODE_IP, new_namespace, require_node
from tests.rig.gcs import GcsServer, running_gcs


@pytest.fixture(scope="session")
def node_gcs() -> Iterator[GcsServer]:
    """Skips, with the reason, where no node runs; else pods reach this at the node's address."""
    require_node()
    with running_gcs(host=NODE_IP) as server:
        yield server


@pytest.fixture
def experiment(node_gcs: GcsServer) -> Iterator[Experiment]:
    """In a namespace of its own that enforces restricted pod security."""
    with new_namespace() as namespace, node_gcs.client() as client:
        yield Experiment(namespace, node_gcs, client)
