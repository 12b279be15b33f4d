"""One fault at each operation of each process, one at a time, in schedules without any other."""

import pytest

from tandem.checkpoints.policies import RetentionPolicy
from tests.crash.exploring import run_schedule, scratch_folder
from tests.crash.faults import MUTATIONS, Fault, OneFault, Stall
from tests.crash.scenarios import LEASE_SECONDS, EvaluatorPlan, Scenario, TrainerPlan

ALONE = Scenario(num_steps=3)
TAKEN_OVER = Scenario(
    num_steps=3,
    trainers=(TrainerPlan(0.0, "job-1"), TrainerPlan(7.0, "job-2", takeover=True)),
    evaluators=(EvaluatorPlan(2.0), EvaluatorPlan(3.0, "newest-first")),
    stickiness=0.5,
)
STARTED_AGAIN = Scenario(
    num_steps=4,
    save_every=2,
    trainers=(TrainerPlan(0.0, "job-1", preempted_after=3), TrainerPlan(6.0, "job-1")),
    retention=RetentionPolicy(max_to_keep=1, max_unevaluated=1),
)
CROWDED = Scenario(
    num_steps=4,
    eval_sets=(*Scenario().eval_sets, Scenario().eval_sets[0]._replace(name="night")),
    evaluators=(EvaluatorPlan(1.0), EvaluatorPlan(1.0)),
    exports=3,
    pins=1,
    sweepers=(12.0,),
    stickiness=0.9,
)
SWEPT = Scenario(
    num_steps=3,
    retention=RetentionPolicy(max_to_keep=1, max_unevaluated=2),
    exports=2,
    sweepers=(60.0,),
)
SCENARIOS = {
    "alone": ALONE,
    "taken over": TAKEN_OVER,
    "started again": STARTED_AGAIN,
    "crowded": CROWDED,
    "swept": SWEPT,
}

LONG = Stall(LEASE_SECONDS * 2.5, 0)


class _Recorder:
    """No faults; remembers who did what."""

    def __init__(self):
        self.seen = []

    def at(self, process, operation, name):
        self.seen.append((process.name, process.operations, operation))


class _Explorer:
    """Runs a scenario's schedule of one seed, with one fault or none."""

    def __init__(self, scenario, seed, folder, backend):
        self._scenario, self._seed = scenario, seed
        self._folder, self._backend = folder, backend

    def operations(self):
        recorder = _Recorder()
        result = self._run(lambda random: recorder)
        assert result.violation is None, result.what
        return recorder.seen

    def violation(self, process, number, fault):
        # A trainer that stalls is one whose place another takes.
        result = self._run(
            lambda random: OneFault(process, number, fault, stall=LONG), reactions=1.0
        )
        if result.violation:
            return (
                f"seed {self._seed}, {process} {fault.value} its operation {number}: {result.what}"
            )
        return None

    def _run(self, faults, **changes):
        return run_schedule(
            self._scenario._replace(**changes),
            seed=self._seed,
            faults=faults,
            folder=self._folder,
            backend=self._backend,
        )


def _faults_at(operation):
    yield Fault.KILLED_BEFORE
    yield Fault.FAILED
    if operation in MUTATIONS:
        yield Fault.KILLED_AFTER
        yield Fault.UNCLEAR
        yield Fault.STALLED_BEFORE
        yield Fault.STALLED_AFTER


def _explore(scenario, *, seed=1, backend="memory", faults_at=_faults_at):
    with scratch_folder() as folder:
        explorer = _Explorer(scenario, seed, folder, backend)
        operations = explorer.operations()
        violations = [
            violation
            for process, number, operation in operations
            if not process.startswith("last-sweeper")
            for fault in faults_at(operation)
            if (violation := explorer.violation(process, number, fault))
        ]
    assert len(operations) > 100
    assert violations == []


@pytest.mark.parametrize("name", ["alone", "taken over"])
def test_any_one_fault_at_any_operation_breaks_no_promise(name):
    _explore(SCENARIOS[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_any_one_fault_of_any_kind_breaks_no_promise_in_other_orders(name, seed):
    _explore(SCENARIOS[name], seed=seed, faults_at=lambda operation: Fault)


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_any_one_fault_breaks_no_promise_on_real_files(name):
    _explore(SCENARIOS[name], backend="local")
