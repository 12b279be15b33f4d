"""What a trainer process is told."""

from __future__ import annotations

from pydantic import Field, field_validator

from services.settings import ClusterSettings
from tandem.checkpoints.policies import RetentionPolicy, parse_best_rule


class TrainerSettings(ClusterSettings):
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
    keep_every_n_steps: int | None = Field(
        default=None,
        ge=1,
        description="also keep the first checkpoint at or after each multiple of so many steps",
    )
    keep_best: tuple[str, ...] = Field(
        default=(),
        description="also keep the best by COUNT, COUNT:METRIC or COUNT:METRIC:EVALSET, as "
        "2:Loss/total_loss; may be given several times",
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
    termination_deadline: float = Field(
        default=25.0,
        ge=0,
        le=604800,
        description="seconds from SIGTERM or Ctrl-C within which the last checkpoint is committed "
        "or given up; keep it below terminationGracePeriodSeconds, after which Kubernetes kills",
        json_schema_extra={"metavar": "SECONDS"},
    )
    scratch_dir: str | None = Field(
        default=None,
        min_length=1,
        description="folder for files under way, with room for two checkpoints (default: the run "
        "folder, or the system's temporary folder for a run in a bucket)",
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

    job: str | None = Field(
        default=None,
        min_length=1,
        description="name of the Job that runs this trainer",
        json_schema_extra={"group": "Kubernetes"},
    )

    @field_validator("keep_best")
    @classmethod
    def _check_rules(cls, rules: tuple[str, ...]) -> tuple[str, ...]:
        for rule in rules:
            parse_best_rule(rule)
        return rules

    @property
    def retention(self) -> RetentionPolicy:
        """Which checkpoints stay."""
        return RetentionPolicy(
            max_to_keep=self.max_to_keep,
            keep_every_n_steps=self.keep_every_n_steps,
            keep_best=tuple(map(parse_best_rule, self.keep_best)),
            max_unevaluated=self.max_unevaluated,
        )
