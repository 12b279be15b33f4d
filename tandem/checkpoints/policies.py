"""How much of a run is kept: the part of an attempt's settings that is recorded with it.

So whoever retires on an attempt's behalf, `tandem store gc` for one, needs no configuration. What
follows from a policy is decided in `tandem.checkpoints.retention`.
"""

from __future__ import annotations

from pydantic import Field

from tandem.checkpoints.names import EvalSet
from tandem.checkpoints.records import Facts
from tandem.errors import ConfigError, nearest_names

MAIN_METRIC = "DetectionBoxes_Precision/mAP"
"""What the best checkpoint of an evaluation set is the best in."""

_LOSSES = "Loss/"
_CATEGORIES = "DetectionBoxes_PerformanceByCategory/"
_KNOWN_METRICS = (
    MAIN_METRIC,
    *(f"{MAIN_METRIC}{part}" for part in ("@.50IOU", "@.75IOU", " (small)", " (medium)")),
    f"{MAIN_METRIC} (large)",
    *(f"DetectionBoxes_Recall/AR@{part}" for part in ("1", "10", "100", "100 (small)")),
    *(f"DetectionBoxes_Recall/AR@100 ({size})" for size in ("medium", "large")),
    *(f"{_LOSSES}{part}_loss" for part in ("localization", "classification", "regularization")),
    f"{_LOSSES}total_loss",
)


def lower_is_better(metric: str) -> bool:
    """Whether the best value of a metric is its lowest, as a loss's is."""
    return metric.startswith(_LOSSES)


class BestRule(Facts):
    """That the best checkpoints by a metric stay.

    Attributes:
        metric: by its name in the ledger and in TensorBoard; of a `Loss/...` the lowest is best.
        eval_set: name of the evaluation set that it is looked up in; None for each of them.
        count: how many stay.
    """

    metric: str = MAIN_METRIC
    eval_set: str | None = None
    count: int = Field(default=1, ge=1)

    def concerns(self, eval_set: EvalSet) -> bool:
        """Whether the rule looks at an evaluation set."""
        return self.eval_set is None or self.eval_set == eval_set.name


class RetentionPolicy(Facts):
    """How much is kept; each field adds to what the others keep.

    Attributes:
        max_to_keep: how many of the newest checkpoints; 7 as in the Object Detection API.
        keep_every_n_steps: also the first checkpoint at or after each multiple of so many steps.
        keep_best: also the best by further rules; the best by `MAIN_METRIC` of each set always
            stays.
        max_unevaluated: how many checkpoints may wait for the evaluator beyond that.
    """

    max_to_keep: int = Field(default=7, ge=1)
    keep_every_n_steps: int | None = Field(default=None, ge=1)
    keep_best: tuple[BestRule, ...] = ()
    max_unevaluated: int = Field(default=20, ge=0)

    @property
    def best_rules(self) -> tuple[BestRule, ...]:
        """All rules by which the best stay."""
        return (BestRule(), *self.keep_best)

    def refuse_unknown_sets(self, eval_sets: tuple[EvalSet, ...]) -> None:
        """Raises ConfigError when a rule looks at a set that there isn't, and so has no effect."""
        known = [eval_set.name for eval_set in eval_sets]
        for rule in self.keep_best:
            if rule.eval_set is not None and rule.eval_set not in known:
                raise ConfigError(
                    f"keep_best names the eval set {rule.eval_set!r}; the config has "
                    f"{', '.join(map(repr, known)) or 'none'}{nearest_names(rule.eval_set, known)}"
                )


def parse_best_rule(text: str) -> BestRule:
    """Reads `COUNT`, `COUNT:METRIC` or `COUNT:METRIC:EVAL SET`, as `2:Loss/total_loss:val`.

    Raises:
        ValueError: it is something else, or no evaluation writes that metric.
    """
    count, *rest = text.split(":", 2)
    if not count.isdecimal() or int(count) < 1:
        raise ValueError(
            "expected COUNT, COUNT:METRIC or COUNT:METRIC:EVALSET, as 2:Loss/total_loss"
        )
    metric = rest[0] if rest else MAIN_METRIC
    if metric not in _KNOWN_METRICS and not metric.startswith(_CATEGORIES):
        hint = nearest_names(metric, _KNOWN_METRICS) or f"; known are {', '.join(_KNOWN_METRICS)}"
        raise ValueError(f"no evaluation has the metric {metric!r}{hint}")
    return BestRule(metric=metric, eval_set=rest[1] if len(rest) > 1 else None, count=int(count))
