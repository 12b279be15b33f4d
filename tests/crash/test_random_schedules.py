"""Several crashes, stalls and unclear answers in each schedule, drawn from a seed."""

from collections import Counter

import pytest

from tests.crash.exploring import run_random_schedules

RARE = (
    "claim from none",
    "claim from a checkpoint",
    "void commit",
    "scored entry",
    "skipped entry",
    "failed entry",
    "quarantine",
    "intent under a lease",
    "stale lease",
    "create refused",
    "replace refused",
    "Trainer ends: killed",
    "Trainer ends: AttemptSupersededError",
    "Trainer ends: RunConflictError",
    "Trainer ends: StoreUnavailableError",
    "Evaluator ends: killed",
)


def _explore(number, *, seed, backend="memory"):
    seen = Counter()
    violations = []
    for result in run_random_schedules(range(number), seed=seed, backend=backend):
        seen.update(result.seen)
        if result.violation:
            violations.append(f"seed {seed}, schedule {result.number}: {result.what}")
    assert violations == []
    return seen


def test_random_schedules_break_no_promise_and_reach_what_is_rare():
    seen = _explore(250, seed=1)
    assert [what for what in RARE if not seen[what]] == []


def test_random_schedules_on_real_files_break_no_promise():
    _explore(60, seed=2, backend="local")


@pytest.mark.slow
def test_many_random_schedules_break_no_promise():
    _explore(2500, seed=3)  # `make crash-test` runs more, from other seeds


@pytest.mark.slow
def test_many_random_schedules_on_real_files_break_no_promise():
    _explore(1000, seed=5, backend="local")
