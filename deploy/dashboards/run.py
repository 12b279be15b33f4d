"""Tandem / Run: is this run all right, and if not, where to look."""

from __future__ import annotations

from deploy.dashboards.boards import Annotation, Row, Variable, board, link_to
from deploy.dashboards.panels import Json
from deploy.dashboards.run_rows.answers import answers
from deploy.dashboards.run_rows.bucket import bucket
from deploy.dashboards.run_rows.checkpoints import checkpoints
from deploy.dashboards.run_rows.disturbances import disturbances
from deploy.dashboards.run_rows.doing import doing
from deploy.dashboards.run_rows.evaluation import evaluation
from deploy.dashboards.run_rows.pods import pods
from deploy.dashboards.run_rows.quality import quality
from deploy.dashboards.run_rows.training import training
from deploy.dashboards.selections import RUN, SETS, most, one


def run() -> Json:
    """The dashboard."""
    return board(
        uid="tandem-run",
        title="Tandem / Run",
        description="One run of Tandem: is it all right, does the model get better, what holds it "
        "up. `tandem status` answers the same from the run's own records, without Prometheus.",
        variables=[
            Variable("namespace", "Namespace", "label_values(tandem_build_info, namespace)"),
            Variable("run", "Run", 'label_values(tandem_build_info{namespace="$namespace"}, run)'),
            Variable(
                "eval_set",
                "Eval set",
                f"label_values(tandem_eval_metric{{{RUN}}}, eval_set)",
                several=True,
            ),
        ],
        annotations=_annotations(),
        links=[link_to("tandem-fleet", "All runs")],
        rows=[
            Row("Is this run all right?", [*answers(), *doing()]),
            Row("Does the model get better?", quality()),
            Row("Training", training()),
            Row("Evaluation", evaluation()),
            Row("Checkpoints", checkpoints()),
            Row("Disturbances and lost time", disturbances()),
            Row("Bucket (empty for a run in a folder)", bucket()),
            Row("Pods (needs kube-state-metrics and cAdvisor)", pods(), collapsed=True),
        ],
    )


def _annotations() -> list[Annotation]:
    # Series of a new pod have no past of their own: compared with those of any pod in an hour.
    attempt = most("tandem_train_attempt")
    attempt_before = f"max(max_over_time({one('tandem_train_attempt')}[1h] offset 1m))"
    best_step = one("tandem_eval_best_step", eval_set=SETS)
    best = f"max by (eval_set) ({best_step})"
    best_before = f"max by (eval_set) (max_over_time({best_step}[1h] offset 1m))"
    return [
        Annotation(
            "Trainer started again", f"{attempt} > {attempt_before}", "a new attempt", "orange"
        ),
        Annotation("New best", f"{best} > {best_before}", "on {{eval_set}}", "green"),
        Annotation(
            "Alert",
            f'max by (alertname) (ALERTS{{{RUN}, alertstate="firing"}})',
            "{{alertname}}",
            "red",
        ),
    ]
