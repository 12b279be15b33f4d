"""One schedule: its processes, what starts them again, and the checks at its end."""

import random as random_numbers

from tandem.checkpoints.attempts import Outcome
from tandem.errors import (
    AttemptSupersededError,
    CheckpointDamagedError,
    ObjectNotFoundError,
    RunConflictError,
    StoreError,
    StoreUnavailableError,
)
from tests.crash.bystanders import Exporter, Pinner, Sweeper
from tests.crash.crashing_store import CrashingStore
from tests.crash.damages import Damages
from tests.crash.endings import Ending
from tests.crash.evaluators import Evaluator, Scores
from tests.crash.faults import NoFaults
from tests.crash.scenarios import LEASE_SECONDS, TrainerPlan
from tests.crash.scheduling import EndlessError, Schedule
from tests.crash.trainers import Trainer
from tests.crash.witness import ViolationError, Witness

_MAX_OPERATIONS = 30_000
_RESTART_SECONDS = 4.0
_PATIENCE_SECONDS = 15.0
_MAX_NAMES = 10


class World:
    """Runs one schedule.

    Args:
        scenario: what takes place.
        seed: of everything that is drawn on the way.
        backend: the store; `new_client()` of it is a process's own.
        faults: what befalls whom, until the last sweep; made from the schedule's randomness.
        scratch: an empty folder.
        traces: whether to keep a line per operation.
    """

    def __init__(self, scenario, *, seed, backend, faults, scratch, traces=False):
        random = random_numbers.Random(seed)
        self._scenario = scenario
        self._random = random
        self._backend = backend
        self._scratch = scratch
        self._faults = faults(random)
        self.schedule = Schedule(
            random, max_operations=_MAX_OPERATIONS, stickiness=scenario.stickiness
        )
        self.witness = Witness(self.schedule, lease_seconds=LEASE_SECONDS, traces=traces)
        self._scores = Scores(random, poisons=scenario.poisons)
        self._damages = Damages(random, backend, self.witness, number=scenario.damages)
        self._programs = {}
        self._lives = {}
        self.is_refused = False

    def run(self):
        """Raises ViolationError when a promise is broken."""
        scenario = self._scenario
        for number, plan in enumerate(scenario.trainers, 1):
            self._start_trainer(f"trainer{number}", plan, after=plan.starts_at, is_first=True)
        for number, plan in enumerate(scenario.evaluators, 1):
            self._start_evaluator(f"evaluator{number}", plan, after=plan.starts_at)
        if scenario.exports:
            self._start_exporter("exporter")
        for number in range(scenario.pins):
            self._start(
                f"pinner{number}",
                lambda store: Pinner(store, self.witness, self._random),
                after=self._random.uniform(0.0, 2.0 * scenario.num_steps * scenario.step_seconds),
            )
        for number, starts_at in enumerate(scenario.sweepers):
            self._start(f"sweeper{number}", Sweeper, after=starts_at)
        self._run_all()
        if self.is_refused:
            return
        self._faults = NoFaults()
        self._damages.number = 0
        if self.witness.is_reopened:  # evaluators that were content have to be started again
            self._start_evaluator("late-evaluator", scenario.evaluators[0], after=0.0)
            self._run_all()
        sweeper = self._start("last-sweeper", Sweeper)
        self._run_all()
        if not sweeper.is_done:
            self.witness.broken("finish", "the last sweep was refused")
        self._check_end()

    def _run_all(self):
        try:
            self.schedule.run(on_end=self._on_end)
        except EndlessError as error:
            raise ViolationError("finish", str(error)) from error

    def _check_end(self):
        ending = Ending(self.witness, self._scenario)
        store = self._backend.new_client()
        ending.check(store.list(""))
        store.create("probe", b"")  # temporary files are swept by whoever writes next
        leftovers = [
            *self._backend.temporary_files(),
            *(folder for folder in self._scratch.glob(".saving-*") if self._is_left_over(folder)),
        ]
        if leftovers:
            self.witness.broken("left over", str(leftovers))

    def _is_left_over(self, folder):
        """Whether a newer trainer should have removed it; there may be none after the last."""
        return int(folder.name.split("-")[1]) < self.witness.newest_tidy_attempt

    # Starting, and starting again.

    def _start(self, name, make_program, *, after=0.0, restart=None):
        """Starts a process by the program that is made for its client of the store."""
        life = self._lives[name] = self._lives.get(name, 0) + 1
        program = None

        def run(process):
            program(process)

        process = self.schedule.start(f"{name}.{life}", run, after=after)
        store = CrashingStore(
            self._backend.new_client(), process, self.schedule, faults=self, witness=self.witness
        )
        program = make_program(store)
        self._programs[process] = (program, restart)
        return program

    def _start_trainer(self, name, plan, *, after, is_first=False):
        self._start(
            name,
            lambda store: Trainer(
                store,
                self.witness,
                self._scenario,
                plan,
                scratch=self._scratch,
                preempted_after=plan.preempted_after if is_first else None,
            ),
            after=after,
            restart=lambda: self._start_trainer(name, plan, after=_RESTART_SECONDS),
        )

    def _start_evaluator(self, name, plan, *, after):
        self._start(
            name,
            lambda store: Evaluator(
                store,
                self.witness,
                self._scenario,
                plan,
                self._scores,
                scratch=self._scratch / f"fetched-{name}",
            ),
            after=after,
            restart=lambda: self._start_evaluator(name, plan, after=_RESTART_SECONDS),
        )

    def _start_exporter(self, name):
        self._start(
            name,
            lambda store: Exporter(
                store,
                self.witness,
                self._random,
                number=self._scenario.exports,
                scratch=self._scratch / f"fetched-{name}",
            ),
        )

    def _on_end(self, process):
        program, restart = self._programs.pop(process)
        if process.is_killed:
            self._leave_files(process, program)
        self.witness.note(f"{process.name:<14} ends: {_how(process)}")
        self.witness.seen[f"{type(program).__name__} ends: {_how(process, in_short=True)}"] += 1
        if isinstance(process.error, (AttemptSupersededError, RunConflictError)):
            restart = None
        elif process.error is not None and not self._is_expected(process.error, program):
            raise ViolationError("surprise", f"{process.name} died of {process.error!r}")
        is_over = process.error is None and not process.is_killed
        if is_over and getattr(program, "outcome", None) is not Outcome.PREEMPTED:
            restart = None
        if restart is not None:
            restart()
        elif isinstance(program, Trainer):
            self._see_to_a_trainer()

    def _is_expected(self, error, program):
        """A store that doesn't answer, or what a trainer was to resume from is gone or damaged."""
        if isinstance(error, ObjectNotFoundError):  # the witness has found that it was retired
            return isinstance(program, Trainer) and program.is_too_late
        kinds = (StoreError, CheckpointDamagedError) if self._scenario.damages else ()
        return isinstance(error, StoreUnavailableError) or type(error) in kinds

    def _leave_files(self, process, program):
        """What a killed process had under way stays; the `finally` that removed it never ran."""
        self._backend.leave_temporary_file(process.name)
        attempt = getattr(program, "attempt", None)
        if attempt is not None and attempt.number >= self.witness.newest_tidy_attempt:
            folder = self._scratch / f".saving-{attempt.number:04d}-{process.name}"
            folder.mkdir(exist_ok=True)
            (folder / "ckpt.index").write_bytes(b"half a fi")

    def _see_to_a_trainer(self):
        """Whoever looks after the run starts a trainer when none is left and it isn't finished."""
        if any(isinstance(program, Trainer) for program, _ in self._programs.values()):
            return
        attempts, ends = self.witness.records.attempts(), self.witness.records.ends()
        if attempts and ends.get(max(attempts), {}).get("outcome") == "finished":
            return
        if self.witness.damaged and not self.witness.sound():
            self.is_refused = True  # nothing sound is left, so every trainer refuses the run
            self.witness.seen["refused for damage"] += 1
            self.schedule.give_up()
            return
        plan = TrainerPlan(0.0, "someone", takeover=True)
        self._start_trainer("someone", plan, after=_PATIENCE_SECONDS)

    # What befalls processes and objects; this is the plan of faults that stores ask.

    def at(self, process, operation, name):
        self._damages.strike()
        return self._faults.at(process, operation, name)

    def stall(self, process):
        program, _ = self._programs[process]
        if isinstance(program, Trainer) and self._random.random() < self._scenario.reactions:
            self._react()
        return self._faults.stall()

    def _react(self):
        """A trainer doesn't answer: its node is lost, somebody else goes on, or cleans up."""
        number = len(self._lives)
        after = self._random.uniform(0.0, _PATIENCE_SECONDS)
        if number >= _MAX_NAMES:
            return
        if self._random.random() < 0.3:
            self._start(f"sweeper{number}", Sweeper, after=after)
            return
        plan = TrainerPlan(0.0, self._random.choice(("job-1", f"job-{number}")), takeover=True)
        self._start_trainer(f"trainer{number}", plan, after=after)


def _how(process, *, in_short=False):
    if process.is_killed:
        return "killed"
    if process.error is None:
        return "done"
    return type(process.error).__name__ if in_short else repr(process.error)
