"""What a trainer process is told."""

from __future__ import annotations

from pydantic import Field

from services.settings import ProcessSettings


class TrainerSettings(ProcessSettings):
    """Trains the model of a pipeline.config and commits checkpoints to the run folder.

    Goes on from the run's newest checkpoint when there is one.
    """

    num_train_steps: int | None = Field(
        default=None, ge=0, description="last step; overrides num_steps of the config, 0 is no end"
    )
    checkpoint_every_n: int = Field(
        default=1000, ge=1, description="steps between checkpoints; the last step always has one"
    )
    max_to_keep: int = Field(
        default=7, ge=1, description="newest checkpoints kept; the best of each eval set stays too"
    )
    max_unevaluated: int = Field(
        default=20, ge=0, description="newest checkpoints kept for an evaluator that lags behind"
    )
    summary_every_n: int = Field(
        default=10, ge=1, description="steps between points in TensorBoard"
    )
    log_interval: float = Field(
        default=10.0, ge=0, le=604800, description="seconds between log lines"
    )
    heartbeat_interval: float = Field(
        default=5.0, gt=0, le=604800, description="seconds between signs of life in the run folder"
    )
    metrics_port: int = Field(
        default=0, ge=0, le=65535, description="port of /metrics and /healthz; 0 takes a free one"
    )
    seed: int = Field(default=0, ge=0, lt=2**32, description="of weights, order, augmentation")
    owner: str | None = Field(
        default=None,
        min_length=1,
        description="who restarts this trainer, as a Job's uid; a new attempt of the same owner "
        "starts at once (default: this machine and process)",
    )
    takeover: bool = Field(
        default=False, description="start although another owner's trainer may still be alive"
    )
