"""The values of metrics' labels: few, and known beforehand."""

from __future__ import annotations

from typing import Literal

LossPart = Literal["localization", "classification", "regularization", "total"]
RunState = Literal["starting", "running", "finished", "failed", "preempted", "stopped"]
TrainPhase = Literal[
    "starting", "restoring", "training", "saving", "finished", "failed", "preempted", "stopped"
]
SavePhase = Literal["snapshot", "write", "upload", "commit", "retire"]
SaveOutcome = Literal["ok", "error"]
PreemptionReason = Literal["asked", "killed", "failed"]
BadputCause = Literal["starting", "saving", "data", "lost"]

EvalPhase = Literal[
    "starting", "waiting", "restoring", "running", "publishing", "backing_off", "done"
]
TimedEvalPhase = Literal["restoring", "running", "publishing"]
EvalOutcome = Literal["ok", "error", "skipped"]
RunOutcome = Literal["running", "finished", "failed", "preempted"]
CocoMetric = Literal[
    "AP", "AP50", "AP75", "APs", "APm", "APl", "AR1", "AR10", "AR100", "ARs", "ARm", "ARl"
]

StoreOperation = Literal[
    "create", "upload", "replace", "get", "read", "stat", "list", "delete", "download"
]
StoreOutcome = Literal["ok", "precondition", "missing", "refused", "error"]
