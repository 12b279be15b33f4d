"""What takes place in a schedule: who runs, for how long, and what the store has to bear."""

from typing import NamedTuple

from tandem.checkpoints.names import EvalSet
from tandem.checkpoints.policies import RetentionPolicy
from tests.crash.aims import AIMS, Aim

LEASE_SECONDS = 20.0
_SETS = (EvalSet("val", "d1"), EvalSet("", "d2"))


class TrainerPlan(NamedTuple):
    """A trainer's job: when it starts, as whom, and the step after which its first life is asked
    to stop."""

    starts_at: float
    owner: str
    takeover: bool = False
    preempted_after: int | None = None


class EvaluatorPlan(NamedTuple):
    """An evaluator: when it starts, and in which order it takes checkpoints."""

    starts_at: float
    policy: str = "every"


class Scenario(NamedTuple):
    """Everything about a schedule that isn't drawn on the way.

    Attributes:
        num_steps: of the run.
        save_every: steps between two checkpoints.
        step_seconds: how long a step takes.
        score_seconds: how long an evaluation takes, in three pieces.
        retention: how much is kept.
        eval_sets: what each checkpoint is evaluated on.
        trainers: in the order of their start.
        evaluators: each started again whenever it is killed.
        exports: how many checkpoints another reader reads, one after another.
        pins: how many checkpoints someone pins.
        damages: how many objects get a flipped bit.
        poisons: how many checkpoints kill or fail every evaluation.
        sweepers: when someone runs `tandem store gc` beside all others.
        kills, stalls, errors: how many faults of each kind at most.
        fault_rate: how likely a fault is at an operation that changes nothing.
        aims: faults of their own, besides those.
        reactions: how likely somebody reacts to a trainer that stalls.
        stickiness: how likely a process that can go on does.
    """

    num_steps: int = 3
    save_every: int = 1
    step_seconds: float = 5.0
    score_seconds: float = 3.0
    retention: RetentionPolicy = RetentionPolicy(max_to_keep=1, max_unevaluated=0)
    eval_sets: tuple[EvalSet, ...] = _SETS[:1]
    trainers: tuple[TrainerPlan, ...] = (TrainerPlan(0.0, "job-1"),)
    evaluators: tuple[EvaluatorPlan, ...] = (EvaluatorPlan(0.0),)
    exports: int = 0
    pins: int = 0
    damages: int = 0
    poisons: int = 0
    sweepers: tuple[float, ...] = ()
    kills: int = 0
    stalls: int = 0
    errors: int = 0
    fault_rate: float = 0.0
    aims: tuple[Aim, ...] = ()
    reactions: float = 0.0
    stickiness: float = 0.0


def random_scenario(random):
    """A scenario from a schedule's randomness."""
    num_steps = random.randint(2, 5)
    step_seconds = random.choice((0.5, 3.0, 8.0))
    length = num_steps * step_seconds
    return Scenario(
        num_steps=num_steps,
        save_every=random.choice((1, 1, 1, 2)),
        step_seconds=step_seconds,
        score_seconds=random.choice((0.5, 3.0, 15.0)),
        retention=RetentionPolicy(
            max_to_keep=random.choice((1, 1, 2)), max_unevaluated=random.choice((0, 0, 1, 2))
        ),
        eval_sets=_SETS[: random.choice((1, 1, 2))],
        trainers=tuple(_trainers(random, num_steps=num_steps, length=length)),
        evaluators=tuple(
            EvaluatorPlan(random.uniform(0.0, length), random.choice(("every", "newest-first")))
            for _ in range(random.choice((1, 1, 2, 2, 3)))
        ),
        exports=random.choice((0, 0, 3, 8)),
        pins=random.choice((0, 0, 0, 1, 2)),
        damages=random.choice((0, 0, 0, 1, 2)),
        poisons=random.choice((0, 0, 0, 0, 1)),
        sweepers=_times(random, random.choice((0, 0, 0, 1, 2)), length),
        kills=random.choice((0, 1, 2, 4)),
        stalls=random.choice((0, 1, 2, 4)),
        errors=random.choice((0, 1, 2, 6)),
        fault_rate=random.choice((0.001, 0.004, 0.015)),
        aims=random.choice(AIMS) if random.random() < 0.4 else (),
        reactions=random.choice((0.0, 0.5, 0.9)),
        stickiness=random.choice((0.0, 0.5, 0.9, 0.98)),
    )


def _trainers(random, *, num_steps, length):
    yield TrainerPlan(0.0, "job-1", preempted_after=_preemption(random, num_steps))
    for number in range(2, random.choice((1, 2, 2, 3, 3, 4)) + 1):
        is_same = random.random() < 0.5
        yield TrainerPlan(
            random.uniform(0.0, 1.5 * length),
            "job-1" if is_same else f"job-{number}",
            takeover=not is_same and random.random() < 0.7,
            preempted_after=_preemption(random, num_steps),
        )


def _preemption(random, num_steps):
    return random.randint(0, num_steps) if random.random() < 0.15 else None


def _times(random, number, length):
    return tuple(random.uniform(0.0, 2.0 * length) for _ in range(number))
