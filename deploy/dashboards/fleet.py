"""Tandem / Fleet: which run needs somebody, the worst first."""

from __future__ import annotations

from deploy.dashboards import phases, verdicts
from deploy.dashboards.boards import Row, Variable, board
from deploy.dashboards.panels import Json, Panel, Query, graph, stat
from deploy.dashboards.selections import series
from deploy.dashboards.tables import table

_RUNS = 'namespace=~"$namespace", run=~".+"'
_TO_RUN = (
    "/d/tandem-run?var-datasource=${datasource}&var-namespace=${__data.fields.Namespace}"
    "&var-run=${__data.fields.Run}&${__url_time_range}"
)
_NAME = "{{namespace}}/{{run}}"


def fleet() -> Json:
    """The dashboard."""
    return board(
        uid="tandem-fleet",
        title="Tandem / Fleet",
        description="All runs of Tandem, one row each, the worst first. A row leads to its run.",
        variables=[
            Variable(
                "namespace", "Namespace", "label_values(tandem_build_info, namespace)", several=True
            )
        ],
        annotations=[],
        links=[],
        rows=[
            Row("Which run needs somebody?", [*_counts(), _table()]),
            Row("All runs", _graphs()),
        ],
    )


def _latest(name: str, /, *, how: str = "max", **labels: str) -> str:
    """What stays true when nothing is scraped any more: the last value in the time range."""
    last = f"last_over_time({series(name, _RUNS, **labels)}[$__range])"
    return f"{how} by (namespace, run) ({last})"


def _now(name: str, /) -> str:
    return f"max by (namespace, run) ({series(name, _RUNS)})"


def _age() -> str:
    return f"time() - {_now('tandem_ckpt_last_commit_timestamp_seconds')}"


def _age_of_budget() -> str:
    return f"({_age()}) / (3 * {_now('tandem_ckpt_interval_target_seconds')})"


def _speed_of_best() -> str:
    speed = series("tandem_train_steps_per_second", _RUNS)
    best = f"max by (namespace, run) (max_over_time({speed}[1h]))"
    return f"max by (namespace, run) ({speed}) / {best}"


def _lag() -> str:
    since = _now("tandem_ckpt_oldest_pending_timestamp_seconds")
    return f"(time() - {since}) * ({since} > bool 0)"


def _lag_of_budget() -> str:
    return f"{_lag()} / {_now('tandem_eval_lag_budget_seconds')}"


def _counts() -> list[Panel]:
    shown = [
        ("Broken", "red", "Runs with a red verdict: they get nowhere. Look at these first."),
        ("Unknown", "purple", "Runs that nobody can tell of from metrics: ask `tandem status`."),
        ("Degraded", "orange", "Runs that get on, but not as they should."),
        ("Healthy", "green", "Runs that train, and whose evaluator keeps up."),
        ("Starting or over", "blue", "Runs that have not begun to train, or have ended."),
    ]
    return [
        stat(
            title,
            description,
            Query(_count(colour), title, limits=[(1, colour)]),
            width=width,
            height=3,
            filled=True,
        )
        for (title, colour, description), width in zip(shown, (5, 5, 5, 5, 4), strict=True)
    ]


def _count(colour: str) -> str:
    numbers = [n for n, meaning in verdicts.MEANINGS.items() if meaning.colour == colour]
    verdict = verdicts.verdict_of(_RUNS)
    # The numbers of a colour follow one another.
    within = f"({verdict}) >= {min(numbers)} <= {max(numbers)}"
    return f"count({within}) or vector(0)"


def _table() -> Panel:
    over_budget = [(0.75, "orange"), (1.0, "red")]
    return table(
        "Runs, the worst first",
        "Verdict of each run (the run's dashboard explains them), how far it is, how good, how far "
        "evaluation lags, how old its newest checkpoint is and how often its trainer started "
        "again. Step, AP and restarts are the last known ones; lag and ages are empty when nothing "
        "is scraped. A namespace or a run leads to its dashboard.",
        Query(
            verdicts.verdict_of(_RUNS),
            "Verdict",
            meanings=verdicts.MEANINGS,
            width=160,
            link=_TO_RUN,
        ),
        Query(
            f"{_latest('tandem_train_step')} / {_latest('tandem_train_target_step')}",
            "Progress",
            unit="percentunit",
            decimals=0,
        ),
        Query(_now("tandem_train_eta_seconds"), "Time left", unit="s", decimals=0),
        Query(
            _latest("tandem_eval_metric", how="avg", metric="AP"),
            "AP",
            decimals=3,
        ),
        Query(
            _latest("tandem_eval_best_metric", how="avg", metric="AP"),
            "Best AP",
            decimals=3,
        ),
        Query(_now("tandem_eval_backlog"), "Waiting", decimals=0),
        Query(_lag(), "Lag", unit="s", decimals=0),
        Query(
            _lag_of_budget(),
            "Lag, of budget",
            unit="percentunit",
            limits=over_budget,
            decimals=0,
        ),
        Query(_age(), "Checkpoint age", unit="s", decimals=0),
        Query(
            _age_of_budget(),
            "Age, of budget",
            unit="percentunit",
            limits=over_budget,
            decimals=0,
        ),
        Query(phases.phase_of("train", _RUNS), "Trainer", meanings=phases.MEANINGS),
        Query(phases.phase_of("eval", _RUNS), "Evaluator", meanings=phases.MEANINGS),
        Query(f"{_latest('tandem_train_attempt')} - 1", "Restarts", decimals=0),
        keys={"namespace": "Namespace", "run": "Run"},
        width=24,
        height=7,
        worst_first="Verdict",
        key_links={"Namespace": _TO_RUN, "Run": _TO_RUN},
    )


def _graphs() -> list[Panel]:
    return [
        graph(
            "AP, mean of the eval sets",
            "How good the newest evaluated checkpoint of each run is.",
            Query(
                f'avg by (namespace, run) (tandem_eval_metric{{{_RUNS}, metric="AP"}})',
                _NAME,
                decimals=3,
            ),
            width=6,
            unit="none",
            steps=True,
        ),
        graph(
            "Training speed, of its best in the last hour",
            "100 % is the run's own best; much less means that something holds it up.",
            Query(_speed_of_best(), _NAME),
            width=6,
            unit="percentunit",
        ),
        graph(
            "Checkpoint age, of its budget",
            "The budget is three intervals between saves. Beyond 100 % a kill costs more training "
            "than the settings allow for: see TandemCheckpointStale in the runbook.",
            Query(
                _age_of_budget(),
                _NAME,
            ),
            width=6,
            unit="percentunit",
        ),
        graph(
            "Evaluation lag, of its budget",
            "How long the oldest checkpoint has waited, against the evaluator's --lag-budget. "
            "Beyond 100 %: see TandemEvalLagHigh in the runbook.",
            Query(
                _lag_of_budget(),
                _NAME,
            ),
            width=6,
            unit="percentunit",
        ),
    ]
