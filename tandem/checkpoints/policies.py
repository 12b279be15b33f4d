"""How much of a run is kept: the part of an attempt's settings that is recorded with it.

So whoever retires on an attempt's behalf, `tandem store gc` for one, needs no configuration. What
follows from a policy is decided in `tandem.checkpoints.retention`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping

from pydantic import Field

from tandem.checkpoints.names import EvalSet
from tandem.checkpoints.records import Facts
from tandem.errors import ConfigError, nearest_names

MAIN_METRIC = "DetectionBoxes_Precision/mAP"
"""What the best checkpoint of an evaluation set is the best in."""

_LOSSES = "Loss/"
_COUNT = re.compile("0*[1-9][0-9]{0,8}")
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

    def refuse_unknown_metrics(self, metrics: Mapping[EvalSet, Collection[str]]) -> None:
        """Raises ConfigError when a rule's metric is in no evaluation, and so has no effect.

        Args:
            metrics: the names of what an evaluation gives, by evaluation set; sets of which that
                can't be known are left out, and what concerns them is let pass.
        """
        for rule in self.keep_best:
            known = [names for eval_set, names in metrics.items() if rule.concerns(eval_set)]
            if not known or any(rule.metric in names for names in known):
                continue
            there = {name for names in known for name in names}
            hint = nearest_names(rule.metric, there) or _beginning_alike(rule.metric, there)
            raise ConfigError(
                f"keep_best names the metric {rule.metric!r}, which no evaluation by this config "
                f"has{hint}"
            )

    def refuse_unknown_sets(self, eval_sets: tuple[EvalSet, ...]) -> None:
        """Raises ConfigError when a rule looks at a set that there isn't, and so has no effect."""
        known = [eval_set.name for eval_set in eval_sets]
        for rule in self.keep_best:
            if rule.eval_set is not None and rule.eval_set not in known:
                raise ConfigError(
                    f"keep_best names the eval set {rule.eval_set!r}; the config has "
                    f"{', '.join(map(repr, known)) or 'none'}{nearest_names(rule.eval_set, known)}"
                )


def category_metrics(labels: Mapping[int, str]) -> tuple[str, ...]:
    """The metrics of single categories, by the ids and labels of a label map.

    Two categories may bear one label; their names then have the id.
    """
    uses = Counter(labels.values())
    return tuple(
        f"{_CATEGORIES}mAP/{label}" + (f" (id {number})" if uses[label] > 1 else "")
        for number, label in labels.items()
    )


def evaluated_metrics(labels: Mapping[int, str] | None) -> tuple[str, ...]:
    """The names of all that an evaluation gives.

    Args:
        labels: by id, where the config asks for the categories one by one; else None.
    """
    return (*_KNOWN_METRICS, *(category_metrics(labels) if labels is not None else ()))


def _beginning_alike(metric: str, known: Collection[str]) -> str:
    if metric.startswith(_CATEGORIES):
        alike = sorted(name for name in known if name.startswith(_CATEGORIES))
        if not alike:
            return "; set eval_config.include_metrics_per_category for the categories one by one"
        return f"; of categories it has {', '.join(map(repr, alike))}"
    return f"; it has {', '.join(map(repr, sorted(known)))}"


def parse_best_rule(text: str) -> BestRule:
    """Reads `COUNT`, `COUNT:METRIC` or `COUNT:METRIC:EVAL SET`, as `2:Loss/total_loss:val`.

    Raises:
        ValueError: it is something else, or no evaluation writes that metric.
    """
    count, *rest = text.split(":", 2)
    if not _COUNT.fullmatch(count):
        raise ValueError(
            "expected COUNT, COUNT:METRIC or COUNT:METRIC:EVALSET, as 2:Loss/total_loss"
        )
    metric = rest[0] if rest else MAIN_METRIC
    if metric not in _KNOWN_METRICS and not metric.startswith(_CATEGORIES):
        hint = nearest_names(metric, _KNOWN_METRICS) or f"; known are {', '.join(_KNOWN_METRICS)}"
        raise ValueError(f"no evaluation has the metric {metric!r}{hint}")
    return BestRule(metric=metric, eval_set=rest[1] if len(rest) > 1 else None, count=int(count))
