"""A case for each finding: what is known, and what is said about it."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tandem.status.facts import (
    Access,
    AccessProblem,
    CheckpointFacts,
    PodFacts,
    Room,
    RunFacts,
    Score,
    Trouble,
)
from tandem.status.findings import Cause, Health
from tandem.status.verdicts import _ORDER, verdict_on
from tests.status.experiments import (
    ATTEMPT,
    CHECKPOINTS,
    EVALUATOR,
    EVALUATOR_POD,
    HEALTHY,
    JOB,
    TRAINER,
    TRAINER_POD,
    checkpoints,
    ended,
    eval_set,
    evaluator,
    event,
    hang,
    in_cluster,
    run,
    silent_trainer,
    trainer,
    trouble,
)

PENDING_POD = PodFacts("fox-trainer-1-abc", "trainer", "Pending", age_seconds=900.0)
NOTHING = RunFacts("gs://bucket/fox", access=AccessProblem(Access.NO_RUN, "nothing is there"))


def _inaccessible(kind):
    return RunFacts("gs://bucket/fox", access=AccessProblem(kind, "as the store says"))


def _attempts(*outcomes, owners=None, age=1200.0):
    owners = owners or [ATTEMPT.owner] * len(outcomes)
    return tuple(
        replace(
            ATTEMPT,
            number=number,
            owner=owner,
            outcome=outcome,
            claimed_age_seconds=age,
            ended_age_seconds=None if outcome is None else age - 60,
        )
        for number, (outcome, owner) in enumerate(zip(outcomes, owners, strict=True), start=1)
    )


def _crashed(*resumed):
    """Attempts that were killed, but for the last."""
    attempts = _attempts(*[None] * len(resumed))
    return run(
        attempts=tuple(
            replace(attempt, resumed_step=step)
            for attempt, step in zip(attempts, resumed, strict=True)
        ),
        trainer=replace(TRAINER, attempt=len(resumed)),
    )


CASES = {
    # Where the run folder can't be read.
    "refused": (_inaccessible(Access.REFUSED), "store-refused", "unknown", "storage"),
    "no bucket": (_inaccessible(Access.MISSING), "store-missing", "broken", "storage"),
    "503": (_inaccessible(Access.UNAVAILABLE), "store-unavailable", "unknown", "storage"),
    "no answer": (_inaccessible(Access.SLOW), "store-slow", "unknown", "storage"),
    "line damaged": (_inaccessible(Access.DAMAGED), "entry-damaged", "broken", "storage"),
    "nothing begun": (RunFacts("/runs/fox"), "no-trainer", "unknown", "unknown"),
    "no run": (NOTHING, "no-trainer", "unknown", "unknown"),
    # What the processes say of the storage.
    "errors of requests": (
        trainer(facts={"store_requests": 100, "store_errors": 20}),
        *("store-unavailable", "degraded", "storage"),
    ),
    "slow requests": (
        evaluator(facts={"store_p99_seconds": 5.2}),
        *("store-slow", "degraded", "storage"),
    ),
    "disk full": (
        trainer(
            facts={"save_failures": 1},
            trouble=trouble("StoreUnavailableError", "[Errno 28] No space left on device"),
        ),
        *("disk-full", "broken", "storage"),
    ),
    "disk of the run folder full": (
        run(room=Room(free_bytes=900_000, needed_bytes=17_000_000)),
        *("disk-full", "broken", "storage"),
    ),
    "died of a full disk": (
        silent_trainer(
            phase="failed",
            trouble=trouble("ResourceExhaustedError", "events: No space left on device"),
        ),
        *("disk-full", "broken", "storage"),
    ),
    "a failed save": (
        trainer(facts={"save_failures": 1}),
        *("save-failing", "degraded", "storage"),
    ),
    "failed saves": (
        trainer(facts={"save_failures": 2}, trouble=trouble("StoreUnavailableError", "503")),
        *("save-failing", "broken", "storage"),
    ),
    "died of the store": (
        silent_trainer(phase="failed", trouble=trouble("StoreUnavailableError", "503")),
        *("save-failing", "broken", "storage"),
    ),
    "damaged checkpoint": (
        checkpoints(damaged=("ckpt-11000-1.index: crc32c 1",)),
        *("checkpoint-damaged", "degraded", "storage"),
    ),
    "damage of late, retired since": (
        evaluator(trouble=trouble("CheckpointDamagedError", "checkpoint 450-1 is damaged")),
        *("checkpoint-damaged", "degraded", "storage"),
    ),
    "damaged entry": (
        checkpoints(unreadable=("evaluations/val/1-1-a.json is damaged",)),
        *("entry-damaged", "degraded", "storage"),
    ),
    "damaged entry, as the evaluator says": (
        evaluator(facts={"unreadable_entries": 1}),
        *("entry-damaged", "degraded", "storage"),
    ),
    # Training.
    "hangs in the input": (
        silent_trainer(hang=hang("waiting for data")),
        *("trainer-hanging", "broken", "data"),
    ),
    "hangs in a step": (
        silent_trainer(hang=hang("taking a step")),
        *("trainer-hanging", "broken", "ours"),
    ),
    "silent": (silent_trainer(), "trainer-silent", "broken", "unknown"),
    "silent, its hang long ago": (
        silent_trainer(age_seconds=4000.0, hang=hang("taking a step", age_seconds=3000.0)),
        *("trainer-silent", "broken", "unknown"),
    ),
    "no beat since the claim": (
        run(trainer=None),
        *("trainer-silent", "broken", "unknown"),
    ),
    "not finite": (
        ended("failed", cause="NonFiniteLossError", reason="step 7 is not finite"),
        *("training-failed", "broken", "ours"),
    ),
    "bad record": (
        ended("failed", cause="RecordError", reason="record 9"),
        *("training-failed", "broken", "data"),
    ),
    "failed without a word": (ended("failed"), "training-failed", "broken", "unknown"),
    "died of a label map": (
        silent_trainer(phase="failed", trouble=trouble("LabelMapError", "id 9")),
        *("bad-input", "broken", "data"),
    ),
    "superseded": (
        silent_trainer(phase="failed", trouble=trouble("AttemptSupersededError", "attempt 2")),
        *("two-trainers", "broken", "ours"),
    ),
    "stopped and not resumed": (
        ended("preempted"),
        *("not-resumed", "degraded", "cluster"),
    ),
    "stopped long ago": (
        replace(
            ended("preempted"),
            attempts=(replace(ATTEMPT, outcome="preempted", ended_age_seconds=4000.0),),
        ),
        *("not-resumed", "broken", "cluster"),
    ),
    "stopped again and again": (
        run(attempts=_attempts("preempted", "preempted", "preempted", None)),
        *("preempted-often", "degraded", "cluster"),
    ),
    "another owner took over": (
        run(attempts=_attempts(None, None, owners=["release ml/fox", "release ml/hare"])),
        *("two-trainers", "degraded", "ours"),
    ),
    "no checkpoint for long": (
        checkpoints(newest_age_seconds=1300.0, oldest_pending_age_seconds=1300.0),
        *("checkpoint-stale", "degraded", "ours"),
    ),
    "slow steps": (
        trainer(facts={"steps_per_second": 0.5}),
        *("training-slow", "degraded", "unknown"),
    ),
    "a clock an hour ahead": (
        trainer(clock_ahead_seconds=3600.0),
        *("clock-wrong", "degraded", "cluster"),
    ),
    "a clock more than a minute behind": (
        evaluator(clock_ahead_seconds=-70.0),
        *("clock-wrong", "degraded", "cluster"),
    ),
    # Evaluation.
    "hangs in a set": (
        evaluator(age_seconds=300.0, hang=hang("scoring")),
        *("evaluator-hanging", "broken", "ours"),
    ),
    "evaluator silent": (
        evaluator(age_seconds=300.0),
        *("evaluator-silent", "broken", "unknown"),
    ),
    "no evaluator": (
        run(evaluators=(), checkpoints=replace(CHECKPOINTS, newest_age_seconds=310.0)),
        *("evaluator-silent", "broken", "unknown"),
    ),
    "final evaluation owed": (
        replace(ended("finished"), evaluators=(replace(EVALUATOR, age_seconds=900.0),)),
        *("final-evaluation-owed", "broken", "ours"),
    ),
    "final evaluation owed by one that has left": (
        replace(ended("finished"), evaluators=(replace(EVALUATOR, phase="done"),)),
        *("final-evaluation-owed", "broken", "ours"),
    ),
    "training again, and the evaluator has left": (
        evaluator(phase="done", age_seconds=900.0),
        *("evaluator-silent", "broken", "ours"),
    ),
    "the evaluator was stopped too, a moment ago": (
        evaluator(phase="done", age_seconds=70.0, facts={"ending": "Stopped"}),
        *("evaluator-silent", "degraded", "cluster"),
    ),
    "the evaluator was stopped, and does not come back": (
        evaluator(phase="done", age_seconds=700.0, facts={"ending": "Stopped"}),
        *("evaluator-silent", "broken", "cluster"),
    ),
    "the cluster does not answer": (
        run(cluster_problem="connection refused"),
        *("cluster-unseen", "degraded", "unknown"),
    ),
    "silent since the store failed": (
        silent_trainer(trouble=Trouble("StoreUnavailableError", "503", age_seconds=90.0)),
        *("trainer-silent", "broken", "storage"),
    ),
    "one evaluator of two is silent": (
        run(evaluators=(EVALUATOR, replace(EVALUATOR, name="second", age_seconds=9000.0))),
        *("evaluator-silent", "degraded", "unknown"),
    ),
    "no checkpoint for long, by the pace of the attempts before": (
        replace(
            checkpoints(newest_age_seconds=1300.0, oldest_pending_age_seconds=1300.0),
            trainer=replace(TRAINER, facts={}),
        ),
        *("checkpoint-stale", "degraded", "ours"),
    ),
    "killed again and again, and it gets on": (
        _crashed(None, 2000, 4000, 6000),
        *("trainer-crash-loop", "degraded", "unknown"),
    ),
    "killed again and again at the same step": (
        replace(
            _crashed(2000, 2000, 2000, 2000),
            checkpoints=replace(CHECKPOINTS, newest_step=2000),
        ),
        *("trainer-crash-loop", "broken", "unknown"),
    ),
    "killed again and again at the same step, which the newest one has left behind": (
        _crashed(2000, 2000, 2000, 2000),
        *("trainer-crash-loop", "degraded", "unknown"),
    ),
    "finished, and its last checkpoint is gone": (
        replace(
            ended("finished", final_step=60_000),
            checkpoints=replace(CHECKPOINTS, newest_step=50_000, num_pending=0),
        ),
        *("checkpoint-damaged", "broken", "storage"),
    ),
    "a file of the newest checkpoint is gone": (
        checkpoints(incomplete=("checkpoints/ckpt-12000-1.index",)),
        *("checkpoint-damaged", "degraded", "storage"),
    ),
    "the clock here is behind the store's": (
        run(clock_behind_seconds=70.0),
        *("clock-wrong", "degraded", "cluster"),
    ),
    "waits for its first data": (
        run(
            trainer=replace(
                TRAINER,
                step=0,
                age_seconds=400.0,
                hang=hang("waiting for data", silent_seconds=400.0),
            )
        ),
        *("trainer-hanging", "broken", "data"),
    ),
    "stopped a moment ago": (
        ended("preempted", age_seconds=5.0),
        *("not-resumed", "degraded", "cluster"),
    ),
    "given up": (
        eval_set(failed_step=11_000, failed_reason="ResourceExhaustedError"),
        *("evaluation-failing", "degraded", "unknown"),
    ),
    "in its third try": (
        eval_set(num_tries=3),
        *("evaluation-failing", "degraded", "unknown"),
    ),
    "waits beyond the budget": (
        checkpoints(oldest_pending_age_seconds=2000.0),
        *("evaluation-behind", "degraded", "ours"),
    ),
    "never catches up": (
        replace(
            eval_set(seconds_per_evaluation=900.0),
            checkpoints=replace(CHECKPOINTS, num_pending=4),
        ),
        *("evaluation-behind", "degraded", "ours"),
    ),
    "far below the best": (
        eval_set(last=Score(11_000, 0.20)),
        *("metric-regressed", "degraded", "ours"),
    ),
    "older image": (evaluator(image="tandem:0"), "images-differ", "degraded", "ours"),
    # The cluster.
    "no node": (
        in_cluster(
            NOTHING,
            trainer_pod=replace(PENDING_POD, waiting="Unschedulable", message="0/3 nodes"),
        ),
        *("unschedulable", "broken", "cluster"),
    ),
    "no quota": (
        in_cluster(
            NOTHING,
            trainer_pod=False,
            events=[event("FailedCreate", "exceeded quota: gpus", "Job/fox-trainer-1")],
        ),
        *("quota-exceeded", "broken", "quota"),
    ),
    "pod refused": (
        in_cluster(
            NOTHING,
            trainer_pod=False,
            events=[event("FailedCreate", "violates PodSecurity", "Job/fox-trainer-1")],
        ),
        *("pod-refused", "broken", "cluster"),
    ),
    "no image": (
        in_cluster(
            NOTHING,
            trainer_pod=replace(PENDING_POD, waiting="ImagePullBackOff", message="not found"),
        ),
        *("image-pull", "broken", "ours"),
    ),
    "held back by Kueue": (
        in_cluster(
            silent_trainer(),
            job=replace(JOB, phase="waiting", is_suspended=True, queue="gpus"),
            trainer_pod=False,
            events=[event("Stopped", "Preempted to accommodate a workload", "Job/fox-trainer-1")],
        ),
        *("kueue-evicted", "degraded", "quota"),
    ),
    "trainer out of memory": (
        in_cluster(
            silent_trainer(),
            trainer_pod=replace(
                TRAINER_POD, phase="Failed", is_ready=False, last_exit="OOMKilled", exit_code=137
            ),
        ),
        *("trainer-out-of-memory", "broken", "ours"),
    ),
    "out of memory before a new pod that begins": (
        in_cluster(
            NOTHING,
            trainer_pod=replace(TRAINER_POD, is_ready=False, age_seconds=9.0),
            more_pods=[
                replace(
                    TRAINER_POD,
                    name="fox-trainer-1-old",
                    phase="Failed",
                    is_ready=False,
                    last_exit="OOMKilled",
                    exit_code=137,
                    age_seconds=80.0,
                )
            ],
        ),
        *("trainer-out-of-memory", "broken", "ours"),
    ),
    "out of memory a while ago": (
        in_cluster(
            trainer_pod=replace(TRAINER_POD, age_seconds=600.0),
            more_pods=[
                replace(
                    TRAINER_POD,
                    name="fox-trainer-1-old",
                    phase="Failed",
                    is_ready=False,
                    last_exit="OOMKilled",
                    exit_code=137,
                    age_seconds=800.0,
                )
            ],
        ),
        *("trainer-out-of-memory", "degraded", "ours"),
    ),
    "an earlier Job's failure is over": (
        in_cluster(
            silent_trainer(),
            more_pods=[
                replace(
                    TRAINER_POD,
                    name="fox-trainer-0-old",
                    phase="Failed",
                    is_ready=False,
                    last_exit="Error",
                    exit_code=2,
                    age_seconds=8000.0,
                )
            ],
        ),
        *("trainer-silent", "broken", "unknown"),
    ),
    "held back a moment ago": (
        in_cluster(
            ended("preempted", age_seconds=5.0),
            job=replace(JOB, phase="waiting", is_suspended=True, queue="gpus"),
            trainer_pod=False,
        ),
        *("kueue-evicted", "degraded", "quota"),
    ),
    "refused its input": (
        in_cluster(
            NOTHING,
            job=replace(JOB, phase="failed", reason="PodFailurePolicy"),
            trainer_pod=replace(
                TRAINER_POD, phase="Failed", is_ready=False, last_exit="Error", exit_code=2
            ),
            events=[event("BadInput", "batch_size: -1", "Job/fox-trainer-1")],
        ),
        *("bad-input", "broken", "ours"),
    ),
    "refused its data": (
        in_cluster(
            NOTHING,
            job=replace(JOB, phase="failed", reason="PodFailurePolicy"),
            trainer_pod=replace(
                TRAINER_POD, phase="Failed", is_ready=False, last_exit="Error", exit_code=2
            ),
            events=[event("BadData", "label 9 is in no label map", "Job/fox-trainer-1")],
        ),
        *("bad-input", "broken", "data"),
    ),
    "refused by the bucket": (
        in_cluster(
            NOTHING,
            trainer_pod=replace(
                TRAINER_POD, phase="Failed", is_ready=False, last_exit="Error", exit_code=2
            ),
            events=[event("StorageFailed", "access refused", "Job/fox-trainer-1")],
        ),
        *("store-refused", "broken", "storage"),
    ),
    "a second release on the run": (
        in_cluster(
            NOTHING,
            trainer_pod=replace(
                TRAINER_POD, phase="Failed", is_ready=False, last_exit="Error", exit_code=2
            ),
            events=[event("RunConflict", "in use by release ml/hare", "Job/fox-trainer-1")],
        ),
        *("two-trainers", "broken", "ours"),
    ),
    "failed again and again": (
        in_cluster(
            silent_trainer(),
            job=replace(JOB, phase="failed", reason="BackoffLimitExceeded"),
            trainer_pod=replace(
                TRAINER_POD, phase="Failed", is_ready=False, last_exit="Error", exit_code=1
            ),
        ),
        *("training-failed", "broken", "unknown"),
    ),
    "evaluator out of memory, once": (
        in_cluster(
            evaluator_pod=replace(EVALUATOR_POD, restarts=1, last_exit="OOMKilled", exit_code=137)
        ),
        *("evaluator-out-of-memory", "degraded", "ours"),
    ),
    "evaluator out of memory, in a loop": (
        in_cluster(
            evaluator(age_seconds=90.0),
            evaluator_pod=replace(
                EVALUATOR_POD,
                is_ready=False,
                restarts=4,
                waiting="CrashLoopBackOff",
                last_exit="OOMKilled",
                exit_code=137,
            ),
        ),
        *("evaluator-out-of-memory", "broken", "ours"),
    ),
    "evaluator ends again and again": (
        in_cluster(
            evaluator(age_seconds=90.0),
            evaluator_pod=replace(
                EVALUATOR_POD,
                is_ready=False,
                restarts=4,
                waiting="CrashLoopBackOff",
                last_exit="Error",
                exit_code=1,
            ),
        ),
        *("evaluator-crash-loop", "broken", "unknown"),
    ),
}


def test_the_worst_of_several_findings_is_the_verdict():
    facts = replace(
        silent_trainer(),  # broken
        clock_behind_seconds=70.0,  # degraded
        cluster_problem="connection refused",  # degraded
    )
    verdict = verdict_on(facts)

    assert verdict.health is Health.BROKEN
    ranks = [finding.health.rank for finding in verdict.findings]
    assert len(ranks) >= 3
    assert ranks == sorted(ranks)
    assert verdict.text == verdict.findings[0].text


@pytest.mark.parametrize(("facts", "code", "health", "cause"), CASES.values(), ids=CASES)
def test_the_worst_finding_is(facts, code, health, cause):
    verdict = verdict_on(facts)

    assert (verdict.findings[0].code, verdict.health, verdict.cause) == (
        code,
        Health(health),
        Cause(cause),
    )
    assert verdict.text == verdict.findings[0].text
    assert "\n" not in verdict.text
    assert verdict.next_command


def test_every_finding_has_a_case():
    assert {code for _, code, _, _ in CASES.values()} == set(_ORDER)


HEALTHY_CASES = {
    "training": HEALTHY,
    "in a cluster": in_cluster(),
    "some wait, and it keeps up": checkpoints(num_pending=4),
    "compiling the first step": run(
        trainer=replace(
            TRAINER, step=0, age_seconds=200.0, hang=hang("taking a step", silent_seconds=200.0)
        )
    ),
    "resumed and compiling": run(
        attempts=(replace(ATTEMPT, resumed_step=12_000),),
        trainer=replace(
            TRAINER, age_seconds=200.0, hang=hang("taking a step", silent_seconds=200.0)
        ),
    ),
    "with room": run(room=Room(free_bytes=10**9, needed_bytes=17_000_000)),
    "just claimed": run(trainer=None, attempts=(replace(ATTEMPT, claimed_age_seconds=9.0),)),
    "before the first checkpoint": run(
        attempts=(replace(ATTEMPT, claimed_age_seconds=100.0),),
        checkpoints=CheckpointFacts(),
        evaluators=(),
        eval_sets=(),
    ),
    "stopped twice in an hour": run(attempts=_attempts("preempted", "preempted", None)),
    "took over after an end": run(
        attempts=_attempts("preempted", None, owners=["release ml/fox", "release ml/hare"])
    ),
    "finished, and evaluating the last one": ended("finished"),
    "finished and scaled to zero": replace(
        ended("finished"),
        evaluators=(replace(EVALUATOR, phase="done", age_seconds=9000.0),),
        checkpoints=replace(CHECKPOINTS, num_pending=0, oldest_pending_age_seconds=None),
    ),
    "no ground truth": eval_set(last=Score(11_000, None), best=None),
    "an hour of training with one error of a thousand": trainer(
        facts={"store_requests": 1000, "store_errors": 3}
    ),
}


@pytest.mark.parametrize("facts", HEALTHY_CASES.values(), ids=HEALTHY_CASES)
def test_nothing_is_wrong_with(facts):
    verdict = verdict_on(facts)

    assert verdict.findings == ()
    assert (verdict.health, verdict.cause, verdict.alert) == (Health.HEALTHY, None, "")


def test_of_equally_bad_findings_the_cause_is_said_first():
    facts = in_cluster(
        silent_trainer(),
        trainer_pod=replace(PENDING_POD, waiting="Unschedulable", message="0/3 nodes"),
        evaluator_pod=replace(EVALUATOR_POD, restarts=5, is_ready=False, last_exit="OOMKilled"),
    )

    codes = [finding.code for finding in verdict_on(facts).findings]

    assert codes == ["unschedulable", "evaluator-out-of-memory"]
    assert [f.code for f in verdict_on(replace(facts, cluster=None)).findings] == ["trainer-silent"]


def test_an_evaluator_that_has_ended_after_a_failed_training_is_no_finding():
    facts = replace(
        ended("failed", cause="NonFiniteLossError"),
        evaluators=(replace(EVALUATOR, phase="done", age_seconds=900.0),),
        checkpoints=replace(CHECKPOINTS, num_pending=0),
    )

    assert [finding.code for finding in verdict_on(facts).findings] == ["training-failed"]


def test_what_nobody_could_look_at_is_never_healthy():
    for kind in Access:
        assert verdict_on(_inaccessible(kind)).health is not Health.HEALTHY
    assert verdict_on(RunFacts("/runs/fox")).health is Health.UNKNOWN


def test_the_documentation_names_every_code_and_its_causes():
    text = (Path(__file__).parents[2] / "docs/status.md").read_text()
    table = text.partition("A finding's `code` is stable:")[2]
    rows = dict(re.findall(r"^\| `([a-z-]+)` \| ([a-z, ]+) \|", table, re.MULTILINE))

    assert set(rows) == set(_ORDER)
    causes = {(code, cause) for _, code, _, cause in CASES.values()}
    assert {pair for pair in causes if pair[1] not in rows[pair[0]].split(", ")} == set()
