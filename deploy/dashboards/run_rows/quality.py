"""Does the model get better?"""

from __future__ import annotations

from deploy.dashboards.panels import Panel, Query, graph
from deploy.dashboards.selections import SETS, one


def quality() -> list[Panel]:
    """AP and losses."""
    return [
        graph(
            "AP by eval set",
            "AP (mean over IoU 0.50 to 0.95) of every evaluated checkpoint; dashed, the best.",
            Query(
                f"max by (eval_set) ({one('tandem_eval_metric', eval_set=SETS, metric='AP')})",
                "{{eval_set}}",
                decimals=3,
            ),
            Query(
                f"max by (eval_set) ({one('tandem_eval_best_metric', eval_set=SETS, metric='AP')})",
                "best on {{eval_set}}",
                "text",
                dashed=True,
                decimals=3,
            ),
            width=8,
            height=8,
            unit="none",
            steps=True,
        ),
        graph(
            "AP by overlap and by size of objects",
            "Where the model is weak: AP at IoU 0.50 and 0.75, and for small, medium and large "
            "objects. A size without ground truth has no curve.",
            Query(
                "max by (eval_set, metric) ("
                + one("tandem_eval_metric", eval_set=SETS, metric="~AP50|AP75|APs|APm|APl")
                + ")",
                "{{eval_set}} {{metric}}",
                decimals=3,
            ),
            width=8,
            height=8,
            unit="none",
            steps=True,
        ),
        graph(
            "Loss by part",
            "Training loss of the newest step, and the parts that it adds up from.",
            Query(f"max by (part) ({one('tandem_train_loss')})", "{{part}}"),
            width=8,
            height=8,
            unit="none",
        ),
    ]
