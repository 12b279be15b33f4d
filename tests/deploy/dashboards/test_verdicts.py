"""The verdicts on made-up histories of an hour, by promtool; a value a minute."""

import subprocess

import yaml

from deploy.dashboards.verdicts import MEANINGS, VERDICTS, verdict_of
from tests.deploy.rendering import NEEDS_TOOLS, tool

_NOW = "0+60x60"  # a timestamp that is renewed all the time
_NEVER = "NaN " * 61
_GONE = None
_HEALTHY = {
    'tandem_build_info{pod="trainer"}': "1x60",
    'tandem_build_info{pod="evaluator"}': "1x60",
    'tandem_run_state{state="starting"}': "0x60",
    'tandem_run_state{state="running"}': "1x60",
    'tandem_run_state{state="preempted"}': "0x60",
    'tandem_run_state{state="failed"}': "0x60",
    "tandem_train_step": "0+100x60",
    "tandem_train_attempt": "1x60",
    "tandem_train_last_step_timestamp_seconds": _NOW,
    "tandem_train_stall_budget_seconds": "300x60",
    "tandem_wall_seconds_total": "0+60x60",
    "tandem_ckpt_last_commit_timestamp_seconds": _NOW,
    "tandem_ckpt_interval_target_seconds": "120x60",
    'tandem_ckpt_saves_total{outcome="ok"}': "0+1x60",
    'tandem_ckpt_saves_total{outcome="error"}': "0x60",
    "tandem_ckpt_verify_failures_total": "0x60",
    'tandem_gcs_requests_total{outcome="ok"}': "0+100x60",
    'tandem_gcs_requests_total{outcome="error"}': "0x60",
    'tandem_gcs_requests_total{outcome="refused"}': "0x60",
    "tandem_eval_heartbeat_timestamp_seconds": _NOW,
    'tandem_eval_phase{phase="running"}': "1x60",
    'tandem_eval_phase{phase="done"}': "0x60",
    'tandem_eval_run_outcome{outcome="running"}': "1x60",
    'tandem_eval_run_outcome{outcome="finished"}': "0x60",
    'tandem_eval_run_outcome{outcome="failed"}': "0x60",
    'tandem_eval_run_outcome{outcome="preempted"}': "0x60",
    'tandem_eval_attempts_total{outcome="ok"}': "0+1x60",
    'tandem_eval_attempts_total{outcome="error"}': "0x60",
    "tandem_eval_newest_checkpoint_step": "0+100x60",
    'tandem_eval_last_completed_step{eval_set="val"}': "0+100x60",
    'tandem_eval_last_completed_step{eval_set="train"}': "0+100x60",
    "tandem_ckpt_oldest_pending_timestamp_seconds": "0x60",
    "tandem_eval_lag_budget_seconds": "1800x60",
    'tandem_eval_metric{metric="AP"}': "0.4x60",
    'tandem_eval_best_metric{metric="AP"}': "0.42x60",
}
_NO_TRAINER = {
    name: _GONE
    for name in _HEALTHY
    if name.startswith(("tandem_run_state", "tandem_train_", "tandem_ckpt_saves"))
    or name
    in (
        "tandem_wall_seconds_total",
        "tandem_ckpt_last_commit_timestamp_seconds",
        "tandem_ckpt_interval_target_seconds",
    )
}
_FINISHED = {
    **_NO_TRAINER,
    'tandem_eval_run_outcome{outcome="running"}': "0x60",
    'tandem_eval_run_outcome{outcome="finished"}': "1x60",
}
_HISTORIES = {
    "Healthy": [
        {},
        {"tandem_ckpt_interval_target_seconds": _NEVER},
        {"tandem_train_stall_budget_seconds": _NEVER},
        {'tandem_eval_attempts_total{outcome="error"}': "0+1x60"},  # some succeed
        {'tandem_ckpt_saves_total{outcome="error"}': "0+1x60"},
        {"tandem_ckpt_oldest_pending_timestamp_seconds": "2000x60"},
        {"tandem_train_attempt": "1x30 2x30"},
        {'tandem_eval_metric{metric="AP"}': "0.42x40 0.36x20"},
        {name: _GONE for name in _HEALTHY if "gcs" in name},  # a run in a folder
        {name: _GONE for name in _HEALTHY if "eval" in name or "pending" in name},
    ],
    "Starting": [
        {
            'tandem_run_state{state="running"}': "0x60",
            'tandem_run_state{state="starting"}': "1x60",
        }
    ],
    "Training failed": [
        {'tandem_run_state{state="running"}': "0x60", 'tandem_run_state{state="failed"}': "1x60"},
        {
            **_NO_TRAINER,
            'tandem_eval_run_outcome{outcome="running"}': "0x60",
            'tandem_eval_run_outcome{outcome="failed"}': "1x60",
        },
    ],
    "Two trainers": [{'tandem_run_state{state="running", pod="another"}': "1x60"}],
    "Training stalled": [
        {
            "tandem_train_last_step_timestamp_seconds": "0+60x54 3240x6",
            "tandem_train_step": "0+100x54 5400x6",
        },
        # In the very first step there is no pace yet, and so no budget.
        {
            "tandem_train_last_step_timestamp_seconds": _NEVER,
            "tandem_train_stall_budget_seconds": _NEVER,
            "tandem_train_step": "0x60",
        },
    ],
    "Storage refuses": [{'tandem_gcs_requests_total{outcome="refused"}': "0x55 1+1x5"}],
    "Saves fail": [
        {
            'tandem_ckpt_saves_total{outcome="error"}': "0x50 1+1x10",
            'tandem_ckpt_saves_total{outcome="ok"}': "5x60",
        }
    ],
    "Checkpoint late": [
        {"tandem_ckpt_last_commit_timestamp_seconds": "0+60x53 3180x7"},
        {"tandem_ckpt_last_commit_timestamp_seconds": _NEVER},
    ],
    "Damaged checkpoint": [{"tandem_ckpt_verify_failures_total": "0x30 1x30"}],
    "Evaluator silent": [
        {"tandem_eval_heartbeat_timestamp_seconds": "0+60x54 3240x6"},
        {name: "0+60x54 stale" for name in _HEALTHY if "heartbeat" in name},
        {**_FINISHED, "tandem_eval_heartbeat_timestamp_seconds": "0+60x54 3240x6"},
    ],
    "Evaluation fails": [
        {
            'tandem_eval_attempts_total{outcome="ok"}': "5x60",
            'tandem_eval_attempts_total{outcome="error"}': "0x50 1+1x10",
        }
    ],
    "No trainer": [_NO_TRAINER],
    "Evaluation late": [{"tandem_ckpt_oldest_pending_timestamp_seconds": "1700x60"}],
    "Storage errors": [{'tandem_gcs_requests_total{outcome="error"}': "0+3x60"}],
    "Often preempted": [{"tandem_train_attempt": "1x20 2x10 3x10 4x20"}],
    "AP fell": [{'tandem_eval_metric{metric="AP"}': "0.42x20 0.36x40"}],
    "Preempted": [
        {
            **_NO_TRAINER,
            'tandem_eval_run_outcome{outcome="running"}': "0x60",
            'tandem_eval_run_outcome{outcome="preempted"}': "1x60",
        }
    ],
    "Last evaluations": [
        {**_FINISHED, 'tandem_eval_last_completed_step{eval_set="val"}': "0+100x59 5900"}
    ],
    "Finished": [
        _FINISHED,
        # The evaluator is gone, too, as after scaling to zero: what it said last counts.
        {
            **{name: "1x30 stale" for name in _HEALTHY if "build_info" in name},
            **{name: _GONE for name in _HEALTHY if "build_info" not in name},
            'tandem_eval_run_outcome{outcome="finished"}': "1x30 stale",
            "tandem_eval_newest_checkpoint_step": "700x30 stale",
            'tandem_eval_last_completed_step{eval_set="val"}': "700x30 stale",
        },
    ],
    "Not scraped": [
        {
            **dict.fromkeys(_HEALTHY, "1x30 stale"),
            'tandem_eval_run_outcome{outcome="finished"}': "0x30 stale",
        },
        {
            **{name: "1x30 stale" for name in _HEALTHY if "build_info" in name},
            **{name: _GONE for name in _HEALTHY if "build_info" not in name},
            'tandem_eval_run_outcome{outcome="finished"}': "1x30 stale",
            "tandem_eval_newest_checkpoint_step": "700x30 stale",
            'tandem_eval_last_completed_step{eval_set="val"}': "600x30 stale",
        },
    ],
}


def _series(name, values, run):
    metric, _, labels = name.rstrip("}").partition("{")
    mine = f'namespace="research", run="{run}"'
    return {"series": f"{metric}{{{', '.join(filter(None, [mine, labels]))}}}", "values": values}


def _cases():
    return [
        (f"run-{number}", text, {**_HEALTHY, **changes})
        for number, (text, changes) in enumerate(
            (text, changes) for text, histories in _HISTORIES.items() for changes in histories
        )
    ]


@NEEDS_TOOLS
def test_every_verdict_is_given_when_it_should_and_to_that_run_alone(tmp_path):
    numbers = {meaning.text: number for number, meaning in MEANINGS.items()}
    expected = [
        {"labels": f'{{namespace="research", run="{run}"}}', "value": numbers[text]}
        for run, text, _ in _cases()
    ]
    series = [
        _series(name, values, run)
        for run, _, history in _cases()
        for name, values in history.items()
        if values is not _GONE
    ]
    asked = verdict_of('namespace=~".+", run=~".+"').replace("$__range", "6h")
    tests = [
        {
            "interval": "1m",
            "input_series": series,
            "promql_expr_test": [{"expr": asked, "eval_time": "1h", "exp_samples": expected}],
        }
    ]
    (tmp_path / "test.yaml").write_text(yaml.safe_dump({"tests": tests}))
    done = subprocess.run(
        [tool("promtool"), "test", "rules", "test.yaml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    told = {str(float(number)): meaning.text for number, meaning in MEANINGS.items()}
    assert done.returncode == 0, (told, done.stdout + done.stderr)


def test_every_verdict_has_a_history():
    assert set(_HISTORIES) == {verdict.text for verdict in VERDICTS}


def test_a_worse_colour_has_a_higher_number():
    colours = [meaning.colour for _, meaning in sorted(MEANINGS.items())]
    assert list(dict.fromkeys(colours)) == ["blue", "green", "orange", "purple", "red"]
    assert colours == sorted(colours, key=list(dict.fromkeys(colours)).index)
