"""The verdict on a run: all findings, the one that matters most first."""

from __future__ import annotations

from dataclasses import dataclass

from tandem.status import evaluating, pods, storage, training
from tandem.status.facts import RunFacts
from tandem.status.findings import Cause, Commands, Finding, Health
from tandem.status.words import counted

# Of equally bad findings the first one explains the others.
_ORDER = (
    "store-missing",
    "store-refused",
    "store-unavailable",
    "disk-full",
    "quota-exceeded",
    "kueue-evicted",
    "unschedulable",
    "image-pull",
    "pod-refused",
    "bad-input",
    "trainer-out-of-memory",
    "two-trainers",
    "training-failed",
    "trainer-hanging",
    "save-failing",
    "evaluator-out-of-memory",
    "evaluator-crash-loop",
    "evaluator-hanging",
    "checkpoint-damaged",
    "entry-damaged",
    "final-evaluation-owed",
    "trainer-silent",
    "trainer-crash-loop",
    "not-resumed",
    "evaluator-silent",
    "evaluation-failing",
    "preempted-often",
    "evaluation-behind",
    "clock-wrong",
    "images-differ",
    "store-slow",
    "cluster-unseen",
    "checkpoint-stale",
    "metric-regressed",
    "training-slow",
    "no-trainer",
)


@dataclass(frozen=True)
class Verdict:
    """How a run is.

    Attributes:
        health: of the whole.
        cause: whose fault the worst finding is; None when nothing is wrong.
        text: the worst finding, or what goes well.
        findings: all, the worst first.
        next_command: what to do now; changes nothing.
        alert: the alert whose runbook section says more; empty when nothing is wrong.
    """

    health: Health
    cause: Cause | None
    text: str
    findings: tuple[Finding, ...]
    next_command: str
    alert: str


def verdict_on(facts: RunFacts) -> Verdict:
    """Weighs everything that is known of a run."""
    found = dict.fromkeys(
        [
            *storage.find(facts),
            *training.find(facts),
            *evaluating.find(facts),
            *pods.find_unseen(facts),
        ]
    )  # a cause may be met by two ways
    findings = tuple(sorted(found, key=lambda f: (f.health.rank, _ORDER.index(f.code))))
    if findings:
        worst = findings[0]
        return Verdict(
            worst.health, worst.cause, worst.text, findings, worst.next_command, worst.alert
        )
    return Verdict(Health.HEALTHY, None, _what_goes_well(facts), (), Commands(facts).watch, "")


def _what_goes_well(facts: RunFacts) -> str:
    if facts.outcome == "finished":
        if facts.checkpoints.num_pending:
            to_go = counted(facts.checkpoints.num_pending, "evaluation")
            return f"training has finished, {to_go} to go"
        return "training has finished, and every checkpoint is evaluated"
    trainer = facts.trainer
    if trainer is None or not trainer.lives:
        return "the trainer prepares its first step"
    return "training advances, and evaluation keeps up"
