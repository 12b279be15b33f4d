"""A short soak, with real processes, on each kind of store; `make soak` plays longer ones."""

import pytest

from tests.soak.rounds import soak


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize("store", ["local", "gcs"])
def test_nothing_is_lost_whatever_happens_to_processes_and_store(store, tmp_path):
    violations = soak(store, num_rounds=10, seed=1, folder=tmp_path, say=print)
    assert not violations, "\n".join(violations)
