"""A healthy run's facts, to be changed one at a time."""

from dataclasses import replace

from tandem.status.facts import (
    AttemptFacts,
    CheckpointFacts,
    ClusterFacts,
    EvalSetFacts,
    EventFacts,
    Hang,
    JobFacts,
    PodFacts,
    Process,
    RunFacts,
    Score,
    Trouble,
)

ATTEMPT = AttemptFacts(
    1, owner="release ml/fox", holder="fox-1", image="tandem:1", claimed_age_seconds=7200.0
)
TRAINER = Process(
    "trainer",
    "training",
    age_seconds=3.0,
    step=12_000,
    attempt=1,
    clock_ahead_seconds=0.4,
    image="tandem:1",
    facts={
        "steps_per_second": 3.0,
        "median_step_seconds": 0.33,
        "save_interval_seconds": 330.0,
        "store_requests": 120,
        "store_errors": 0,
        "store_p99_seconds": 0.2,
        "last_step": 60_000,
    },
)
EVALUATOR = Process(
    "main",
    "running",
    age_seconds=4.0,
    step=11_000,
    clock_ahead_seconds=-0.6,
    image="tandem:1",
    facts={"done": 40, "expected": 100, "lag_budget_seconds": 1800.0, "unreadable_entries": 0},
)
CHECKPOINTS = CheckpointFacts(
    newest_step=12_000,
    newest_age_seconds=100.0,
    interval_seconds=330.0,
    num_pending=1,
    oldest_pending_age_seconds=100.0,
)
VAL = EvalSetFacts(
    "val",
    num_pending=1,
    last=Score(11_000, 0.41),
    best=Score(10_000, 0.43),
    num_tries=1,
    seconds_per_evaluation=60.0,
)
HEALTHY = RunFacts(
    "gs://bucket/fox",
    attempts=(ATTEMPT,),
    trainer=TRAINER,
    evaluators=(EVALUATOR,),
    target_step=60_000,
    checkpoints=CHECKPOINTS,
    eval_sets=(VAL,),
)

JOB = JobFacts("fox-trainer-1", "running", num_pods=1, age_seconds=7200.0)
TRAINER_POD = PodFacts("fox-trainer-1-abc", "trainer", "Running", is_ready=True)
EVALUATOR_POD = PodFacts("fox-evaluator-1-xyz", "evaluator", "Running", is_ready=True)
CLUSTER = ClusterFacts(
    "ml", "fox", job=JOB, evaluator_replicas=1, pods=(TRAINER_POD, EVALUATOR_POD)
)


def run(**changes):
    return replace(HEALTHY, **changes)


def trainer(**changes):
    """The healthy run with another trainer; `facts` are added to its own."""
    facts = {**TRAINER.facts, **changes.pop("facts", {})}
    return run(trainer=replace(TRAINER, facts=facts, **changes))


def silent_trainer(**changes):
    return trainer(**{"age_seconds": 400.0, **changes})


def evaluator(**changes):
    facts = {**EVALUATOR.facts, **changes.pop("facts", {})}
    return run(evaluators=(replace(EVALUATOR, facts=facts, **changes),))


def checkpoints(**changes):
    return run(checkpoints=replace(CHECKPOINTS, **changes))


def eval_set(**changes):
    return run(eval_sets=(replace(VAL, **changes),))


def ended(outcome, *, age_seconds=300.0, **changes):
    attempt = replace(ATTEMPT, outcome=outcome, ended_age_seconds=age_seconds, **changes)
    beat = replace(TRAINER, phase=outcome, age_seconds=age_seconds)
    return run(attempts=(attempt,), trainer=beat)


def in_cluster(
    facts=None, *, job=None, trainer_pod=None, evaluator_pod=None, more_pods=(), events=()
):
    """Facts as seen in a cluster; a pod of False isn't there."""
    pods = [
        pod
        for pod in (
            TRAINER_POD if trainer_pod is None else trainer_pod,
            EVALUATOR_POD if evaluator_pod is None else evaluator_pod,
        )
        if pod
    ] + list(more_pods)
    cluster = replace(CLUSTER, job=job or JOB, pods=tuple(pods), events=tuple(events))
    return replace(facts or HEALTHY, cluster=cluster)


def event(reason, message, subject, *, age_seconds=60.0, is_warning=True):
    return EventFacts(reason, message, subject, is_warning, age_seconds)


def hang(place, *, silent_seconds=300.0, age_seconds=20.0):
    return Hang(place, silent_seconds, age_seconds, stack="data/records.py:40 read")


def trouble(kind, text):
    return Trouble(kind, text, 30.0)
