"""Each rule is there for a reason: broken, it is found out, and by the promise that hangs on it."""

import pytest

from tests.crash.exploring import run_random_schedules
from tests.crash.mutants import MUTANTS

_ENOUGH = 1500  # schedules; most need fewer than 100
_CAUGHT = [name for name, mutant in MUTANTS.items() if mutant.promises]
_HARMLESS = [name for name, mutant in MUTANTS.items() if not mutant.promises]


def _first_violation(mutant, *, number):
    results = run_random_schedules(range(number), seed=1, aims=mutant.aims)
    return next((result for result in results if result.violation), None)


@pytest.mark.parametrize("name", _CAUGHT)
def test_a_broken_rule_breaks_the_promise_that_hangs_on_it(name, monkeypatch):
    MUTANTS[name].apply(monkeypatch)
    found = _first_violation(MUTANTS[name], number=_ENOUGH)
    assert found is not None
    assert found.violation in MUTANTS[name].promises, found.what


@pytest.mark.slow
@pytest.mark.parametrize("name", _HARMLESS)
def test_a_rule_that_only_spares_work_breaks_none(name, monkeypatch):
    MUTANTS[name].apply(monkeypatch)
    assert _first_violation(MUTANTS[name], number=_ENOUGH) is None


@pytest.mark.slow
@pytest.mark.parametrize("name", _CAUGHT)
def test_the_faults_that_are_aimed_at_mutants_break_no_promise_of_the_real_code(name):
    assert _first_violation(MUTANTS[name], number=200) is None
