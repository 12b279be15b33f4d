"""`helm install` to `helm uninstall` of one experiment, undisturbed but for an upgrade."""

from math import isfinite

import pytest

from tests.cluster.experiments import RELEASE
from tests.cluster.prometheus import running_prometheus

pytestmark = pytest.mark.cluster

NUM_STEPS, EVERY_N = 2000, 250  # long enough for the release's own test and an upgrade on the way

FASTER = """
train_config { optimizer { momentum_optimizer { learning_rate { cosine_decay_learning_rate {
  learning_rate_base: 0.05
} } } } }
"""


def test_an_experiment_is_upgraded_in_mid_run_ends_completed_and_leaves_nothing(
    experiment, tmp_path
):
    notes = experiment.deploy(num_steps=NUM_STEPS, every_n=EVERY_N)
    assert "kubectl" in notes
    with running_prometheus(experiment.namespace, tmp_path) as prometheus:
        experiment.until(lambda: experiment.entries(), what="the first evaluation")
        experiment.until(
            lambda: set(prometheus.up()) == {"trainer", "evaluator"}, what="both scraped"
        )
        experiment.until(
            lambda: {"train", "eval"} <= experiment.tensorboard_runs(), what="TensorBoard"
        )
        assert "Phase:          Succeeded" in experiment.helm("test", RELEASE, "--timeout=3m")

        first_job = experiment.job()["metadata"]["name"]
        overrides = f"experiment.overrides[1]={FASTER}".replace(",", "\\,")
        experiment.deploy(
            "--set", overrides, num_steps=NUM_STEPS, every_n=EVERY_N, command="upgrade"
        )
        assert experiment.job()["metadata"]["name"] != first_job
        experiment.until(lambda: len(experiment.attempts()) == 2, what="the second attempt")
        first, second = experiment.attempts()
        assert first.owner == second.owner
        assert second.resumed_from is not None
        assert any("learning_rate_base" in line for line in second.config_diff)

        experiment.until(lambda: experiment.evaluator()["spec"]["replicas"] == 0, seconds=400)
        assert prometheus.latest("tandem_train_step") >= EVERY_N
        assert prometheus.latest("tandem_eval_backlog") is not None
    experiment.until(lambda: "completionTime" in experiment.job()["status"], what="a complete Job")
    line = experiment.line()
    assert line.newest.step == NUM_STEPS
    assert {c: len(found) for c, found in experiment.entries().items()} == {
        tuple(checkpoint): 1 for checkpoint in experiment.entries()
    }
    assert {tuple(c) for c in line.checkpoints} <= set(experiment.entries())
    assert {outcome for found in experiment.entries().values() for outcome in found} == {"scored"}
    assert isfinite(experiment.average_precision((NUM_STEPS, 2)))
    assert {"Resumed", "Finished"} <= set(experiment.reasons("Job"))
    assert {"Started", "Completed"} <= set(experiment.reasons("Deployment"))
    annotations = experiment.job()["metadata"]["annotations"]
    assert annotations["tandem.dev/phase"] == "finished"
    assert annotations["tandem.dev/step"] == str(NUM_STEPS)
    told = experiment.evaluator()["metadata"]["annotations"]
    assert "at step" in told["tandem.dev/best-metric"]
    assert told["tandem.dev/ending"] == "Completed"

    experiment.helm("uninstall", RELEASE, "--wait")
    kinds = (
        "jobs,deployments,pods,services,configmaps,secrets,serviceaccounts,roles,rolebindings,"
        "networkpolicies,poddisruptionbudgets,persistentvolumeclaims"
    )
    experiment.until(lambda: not experiment.objects(kinds), what="an empty namespace")
    left = experiment.namespace.get("configmaps,secrets,serviceaccounts")["items"]
    assert {item["metadata"]["name"] for item in left} == {"default", "kube-root-ca.crt"}
