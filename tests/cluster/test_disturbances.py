"""An experiment whose pods are deleted, killed and drained from under it."""

from math import isfinite

import pytest

from tests.cluster.experiments import RELEASE
from tests.rig.cluster import NODE, kubectl, try_kubectl

pytestmark = pytest.mark.cluster

NUM_STEPS, EVERY_N = 2000, 80

# Many small processes, so that the one that the kernel takes for the largest is the evaluator.
EXHAUST = """
import os, pathlib, time
for process in pathlib.Path("/proc").glob("[0-9]*"):
    command = (process / "cmdline").read_bytes()
    if b"tandem-evaluator" in command and b"oom_score_adj" not in command:
        (process / "oom_score_adj").write_text("1000")
for _ in range(100):
    if os.fork() == 0:
        taken = bytearray(os.urandom(1 << 20)) * 100
        time.sleep(600)
time.sleep(600)
"""


def _next_attempt(experiment, number):
    experiment.until(lambda: len(experiment.attempts()) == number, what=f"attempt {number}")
    return experiment.attempts()[-1]


def _progress(experiment):
    """Waits until the attempt under way has committed a checkpoint of its own."""
    number = len(experiment.attempts())

    def has_committed():
        return any(c.attempt == number for c in experiment.line().checkpoints)

    experiment.until(has_committed, what=f"a checkpoint of attempt {number}")


def _pod(experiment, component):
    found = experiment.until(lambda: experiment.pod(component), what=f"a pod of the {component}")
    return found["metadata"]["name"]


def _num_failures(experiment):
    return experiment.job()["status"].get("failed", 0)


def test_training_resumes_whatever_happens_to_its_pods_and_every_checkpoint_has_one_entry(
    experiment,
):
    experiment.deploy(num_steps=NUM_STEPS, every_n=EVERY_N)
    job = experiment.job()["metadata"]["name"]
    namespace = experiment.namespace
    _next_attempt(experiment, 1)
    _progress(experiment)

    namespace.kubectl("delete", "pod", _pod(experiment, "trainer"), "--wait=false")
    second = _next_attempt(experiment, 2)
    assert experiment.line().ends[1].outcome == "preempted"
    assert second.resumed_from.step == experiment.line().ends[1].final_step
    _progress(experiment)
    assert _num_failures(experiment) == 0  # an exit with 42 is none

    namespace.kubectl(
        *("delete", "pod", _pod(experiment, "trainer"), "--grace-period=0", "--force")
    )
    third = _next_attempt(experiment, 3)
    assert third.resumed_from is not None
    _progress(experiment)
    # Force leaves a moment or none: the trainer ended with 42, or was killed, which counts.
    forced = _num_failures(experiment)
    assert forced in (0, 1)

    evaluator = _pod(experiment, "evaluator")
    exhaust = ("--container=evaluator", "--", "python3", "-c", EXHAUST)
    try_kubectl("--namespace", namespace.name, "exec", evaluator, *exhaust)  # goes down with it
    restarted = namespace.wait_until(
        lambda pod: pod["status"]["containerStatuses"][0]["restartCount"] == 1, "pod", evaluator
    )
    last = restarted["status"]["containerStatuses"][0]["lastState"]["terminated"]
    assert (last["reason"], last["exitCode"]) == ("OOMKilled", 137)
    _progress(experiment)

    kubectl("drain", NODE, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=120s",
            f"--pod-selector=app.kubernetes.io/instance={RELEASE}")  # fmt: skip
    try:
        experiment.until(lambda: 3 in experiment.line().ends, what="the end of attempt 3")
        assert experiment.line().ends[3].outcome == "preempted"
    finally:
        kubectl("uncordon", NODE)
    fourth = _next_attempt(experiment, 4)
    assert fourth.resumed_from.step == experiment.line().ends[3].final_step

    experiment.until(lambda: experiment.evaluator()["spec"]["replicas"] == 0, seconds=600)
    experiment.until(lambda: "completionTime" in experiment.job()["status"], what="a complete Job")
    finished = experiment.job()
    assert finished["metadata"]["name"] == job
    assert _num_failures(experiment) == forced  # exits with 42 are none
    line = experiment.line()
    assert (line.newest.step, line.outcome) == (NUM_STEPS, "finished")
    entries = experiment.entries()
    assert {len(found) for found in entries.values()} == {1}
    assert {tuple(c) for c in line.checkpoints} <= set(entries)
    assert {entries[tuple(c)][0] for c in line.checkpoints} == {"scored"}
    assert "failed" not in {outcome for found in entries.values() for outcome in found}
    assert isfinite(experiment.average_precision(tuple(line.newest)))
    steps = {step for step, _ in entries}
    assert set(range(EVERY_N, NUM_STEPS + 1, EVERY_N)) <= steps
    assert experiment.reasons("Job")["Resumed"] >= 1
