"""What an evaluator process is told."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from services.settings import ClusterSettings


class EvaluatorSettings(ClusterSettings):
    """Scores every checkpoint that a trainer commits, once for each eval set of the config.

    Ends when the trainer's final checkpoint is scored, or when the trainer shows no life.
    """

    checkpoint_dir: str | None = Field(
        default=None,
        min_length=1,
        description="run folder to read checkpoints from (default: the run, where results go)",
    )
    adopt: bool = Field(
        default=False,
        description="checkpoint_dir is a folder of the Object Detection API, which exists but may "
        "be empty so far: evaluate what is in it as it is, and write nothing there",
    )
    name: str = Field(
        default="main",
        min_length=1,
        description="of this evaluator; evaluators of one run need different ones",
    )
    wait_interval: float = Field(
        default=180.0,
        gt=0,
        le=604800,
        description="seconds without a new checkpoint and without a sign of life of the trainer "
        "after which to give up",
    )
    poll_interval: float = Field(
        default=10.0, gt=0, le=604800, description="seconds between looks at the run folder"
    )
    lag_budget: float = Field(
        default=1800.0,
        gt=0,
        le=604800,
        description="seconds that a checkpoint may wait for its evaluation; alerts go by it",
        json_schema_extra={"metavar": "SECONDS"},
    )
    policy: Literal["every", "newest-first"] = Field(
        default="every", description="which checkpoint next: the oldest, or the newest"
    )
    lease_seconds: float = Field(
        default=60.0,
        gt=0,
        le=604800,
        description="silence after which another process counts as gone; leases of this one are "
        "renewed every quarter of it, and at least every 15 s",
    )
    metrics_port: int = Field(
        default=0, ge=0, le=65535, description="port of /metrics and /healthz; 0 takes a free one"
    )
    on_end: Literal["exit", "stay", "scale-to-zero"] = Field(
        default="exit",
        description="'stay' goes on serving metrics after the last evaluation, for a Deployment, "
        "which would start an exiting container again; 'scale-to-zero' has the Deployment end it",
    )
    deployment: str | None = Field(
        default=None,
        min_length=1,
        description="name of the Deployment that runs this evaluator",
        json_schema_extra={"group": "Kubernetes"},
    )
    trainer_job: str | None = Field(
        default=None,
        min_length=1,
        description="name of the trainer's Job: while it may still start a pod, the evaluator "
        "waits; once it has failed, the evaluator ends",
        json_schema_extra={"group": "Kubernetes"},
    )

    @model_validator(mode="after")
    def _check_cluster(self) -> EvaluatorSettings:
        if self.on_end == "scale-to-zero" and None in (self.namespace, self.deployment):
            raise ValueError("--on-end scale-to-zero needs --namespace and --deployment")
        return self
