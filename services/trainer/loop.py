"""The outer loop: takes steps one after another and lets the side jobs look at each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from services.watchdog import Place, Where
from tandem import fields
from tandem.errors import DataEndedError, NonFiniteLossError
from tandem.telemetry.labels import LossPart
from tandem.training.schedules import Schedule
from tandem.training.steps import StepResult

WAITING_FOR_DATA = Place("waiting for data")
TAKING_FIRST_STEP = Place("taking a step", patience_seconds=1800.0)
"""The first one is compiled as well, which takes minutes."""
TAKING_A_STEP = Place("taking a step")
BETWEEN_STEPS = Place("between two steps")


class StepFacts(NamedTuple):
    """One finished step, as plain numbers.

    Attributes:
        step: its number; the first is 1.
        losses: by TensorBoard tag.
        learning_rate: it was taken with.
        gradient_norm: global norm before clipping.
        num_images: in its batch.
        seconds: it took, waiting for data included.
        data_seconds: of them, waiting for data.
    """

    step: int
    losses: Mapping[str, float]
    learning_rate: float
    gradient_norm: float
    num_images: int
    seconds: float
    data_seconds: float

    @property
    def losses_by_part(self) -> dict[LossPart, float]:
        """The losses by the names that Prometheus knows them by."""
        return {
            "localization": self.losses["Loss/localization_loss"],
            "classification": self.losses["Loss/classification_loss"],
            "regularization": self.losses["Loss/regularization_loss"],
            "total": self.losses["Loss/total_loss"],
        }


class Action(Protocol):
    """A side job of the loop."""

    def is_due(self, facts: StepFacts) -> bool:
        """Whether to act after this step; decides only."""

    def act(self, facts: StepFacts) -> None:
        """The one effect."""


class Step(Protocol):
    """Takes one optimisation step."""

    def __call__(self, batch: Mapping[str, Any], learning_rate: float) -> StepResult:
        """See `tandem.training.steps.TrainingStep`."""


def run_steps(
    step: int,
    *,
    last_step: int | None,
    take_step: Step,
    batches: Iterator[Mapping[str, Any]],
    schedule: Schedule,
    actions: Sequence[Action],
    should_stop: Callable[[], bool],
    where: Where,
    monotonic: Callable[[], float],
) -> int:
    """Trains until ``last_step`` or until asked to stop, whichever comes first.

    Args:
        step: finished steps so far.
        last_step: None trains until stopped.
        take_step: applies one batch.
        batches: padded examples, endless.
        schedule: learning rate by finished steps.
        actions: asked after every step, in order.
        should_stop: asked before every step.
        where: told where the loop is.
        monotonic: seconds.

    Returns:
        Finished steps.

    Raises:
        NonFiniteLossError: naming the records of the batch; that step changed no weight.
        DataEndedError: there are fewer batches than steps.
    """
    taking = TAKING_FIRST_STEP
    while (last_step is None or step < last_step) and not should_stop():
        where.at = WAITING_FOR_DATA
        began = monotonic()
        batch = next(batches, None)
        if batch is None:
            raise DataEndedError(
                f"the training data ended after step {step}, before the last one: raise or remove "
                "train_input_reader.num_epochs"
            )
        got_data = monotonic()
        where.at = taking
        learning_rate = schedule(step)
        result = take_step(batch, learning_rate)
        losses = _losses(result)
        if not bool(result.finite):
            raise NonFiniteLossError(_explain_non_finite(step + 1, losses, result, batch))
        step += 1
        where.at, taking = BETWEEN_STEPS, TAKING_A_STEP
        facts = StepFacts(
            step=step,
            losses=losses,
            learning_rate=learning_rate,
            gradient_norm=float(result.gradient_norm),
            num_images=int(batch[fields.IMAGE].shape[0]),
            seconds=monotonic() - began,
            data_seconds=got_data - began,
        )
        for action in actions:
            if action.is_due(facts):
                action.act(facts)
    return step


def _losses(result: StepResult) -> dict[str, float]:
    return {
        "Loss/localization_loss": float(result.localization_loss),
        "Loss/classification_loss": float(result.classification_loss),
        "Loss/regularization_loss": float(result.regularization_loss),
        "Loss/total_loss": float(result.total_loss),
    }


def _explain_non_finite(
    step: int, losses: Mapping[str, float], result: StepResult, batch: Mapping[str, Any]
) -> str:
    records = ", ".join(
        f"{record.decode()} (source_id {source.decode() or 'none'!r})"
        for record, source in zip(
            batch[fields.RECORD].numpy(), batch[fields.SOURCE_ID].numpy(), strict=True
        )
    )
    values = ", ".join(f"{name} {value:g}" for name, value in losses.items())
    return (
        f"step {step} is not finite ({values}, gradient norm {float(result.gradient_norm):g}); "
        f"no weight was changed and the newest checkpoint is from before it. Records of the batch: "
        f"{records}. Look for wrong boxes in them, or lower the learning rate"
    )
