"""The twelve answers about a run, one line each. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

from tandem.status.facts import (
    Access,
    AttemptFacts,
    EvalSetFacts,
    PodFacts,
    Process,
    RunFacts,
    Score,
)
from tandem.status.words import age_text, counted, one_line

_HOUR = 3600.0
_MAX_CHANGES = 3
_MAX_CHANGE = 70
_LONG = 1000
_UNKNOWN = "unknown"


class Line(NamedTuple):
    """A label and what is to be said under it."""

    label: str
    text: str


def lines_about(facts: RunFacts) -> list[Line]:
    """All of them, always in the same order."""
    return [
        Line("train", _train(facts)),
        Line("ckpt", _checkpoint(facts)),
        Line("eval", _evaluation(facts)),
        Line("lag", _lag(facts)),
        Line("last", _scores(facts, "last")),
        Line("best", _scores(facts, "best")),
        Line("error", _error(facts)),
        Line("pods", _pods(facts)),
        Line("disruptions", _disruptions(facts)),
        Line("gcs", _store(facts)),
        Line("completion", _completion(facts)),
        Line("changes", _changes(facts)),
    ]


def _train(facts: RunFacts) -> str:
    attempt, trainer = facts.attempt, facts.trainer
    if attempt is None:
        return "no attempt yet" if facts.access is None else _UNKNOWN
    parts = []
    if trainer is not None:
        parts.append(_progress(trainer.step, facts.target_step))
        parts.append(facts.outcome or trainer.phase)
        parts += _speed(trainer) if facts.outcome is None and trainer.lives else []
    else:
        parts.append(facts.outcome or "no sign of life yet")
    heard = f", heard {age_text(trainer.age_seconds)} ago" if trainer else ""
    parts.append(f"attempt {attempt.number} on {attempt.holder or 'an unknown host'}{heard}")
    return ", ".join(parts)


def _progress(step: int | None, target: int | None) -> str:
    of = f" of {target:,}" if target else ""
    return f"step {step:,}{of}" if step is not None else f"step unknown{of}"


def _speed(trainer: Process) -> Iterator[str]:
    rate, median = trainer.number("steps_per_second"), trainer.number("median_step_seconds")
    if rate is not None:
        usual = f" (usual {1 / median:.2f})" if median else ""
        yield f"{rate:.2f} steps/s{usual}"
    eta = trainer.number("eta_seconds")
    if eta is not None:
        yield f"{age_text(eta)} to go"


def _checkpoint(facts: RunFacts) -> str:
    found = facts.checkpoints
    if found.newest_step is None:
        return "none yet" if facts.access is None else _UNKNOWN
    parts = [f"step {found.newest_step:,} committed {age_text(found.newest_age_seconds)} ago"]
    trainer = facts.trainer
    wanted = trainer.number("save_interval_seconds") if trainer else None
    if facts.outcome is None and wanted:
        parts.append(f"one is due every {age_text(wanted)}")
    elif found.interval_seconds:
        parts.append(f"one came every {age_text(found.interval_seconds)}")
    if facts.outcome is None and trainer is not None and trainer.step is not None:
        at_risk = max(0, trainer.step - found.newest_step)
        median = trainer.number("median_step_seconds")
        cost = f" ({age_text(at_risk * median)})" if median else ""
        parts.append(f"a kill now would cost {counted(at_risk, 'step')}{cost}")
    if found.damaged:
        parts.append(f"{len(found.damaged)} damaged")
    return ", ".join(parts)


def _evaluation(facts: RunFacts) -> str:
    if not facts.evaluators:
        return "no evaluator has shown life" if facts.access is None else _UNKNOWN
    return "; ".join(
        _evaluator(one) for one in sorted(facts.evaluators, key=lambda e: e.age_seconds)[:3]
    )


def _evaluator(process: Process) -> str:
    done, expected = process.number("done"), process.number("expected")
    far = f" image {done:.0f} of {expected:.0f}" if done is not None and expected else ""
    step = f", step {process.step:,}" if process.step is not None else ""
    phase = process.phase if process.lives or process.phase == "done" else f"was {process.phase}"
    return (
        f"{process.name}: {phase}{far if process.phase == 'running' else ''}{step} for "
        f"{age_text(process.phase_seconds)}, heard {age_text(process.age_seconds)} ago"
    )


def _lag(facts: RunFacts) -> str:
    found = facts.checkpoints
    if facts.access is not None:
        return _UNKNOWN
    budget = facts.evaluator.number("lag_budget_seconds") if facts.evaluator else None
    allowed = f" ({age_text(budget)} allowed)" if budget else ""
    parts = ["nothing waits"]
    if found.num_pending:
        oldest = age_text(found.oldest_pending_age_seconds)
        wait = "waits" if found.num_pending == 1 else "wait, the oldest"
        parts = [f"{counted(found.num_pending, 'checkpoint')} {wait} for {oldest}{allowed}"]
    takes = sum(s.seconds_per_evaluation or 0.0 for s in facts.eval_sets)
    if takes and found.interval_seconds and found.num_pending and facts.outcome is None:
        verdict = "keeps up" if takes <= found.interval_seconds else "won't catch up"
        parts.append(
            f"an evaluation takes {age_text(takes)}, a checkpoint comes every "
            f"{age_text(found.interval_seconds)}: {verdict}"
        )
    return ", ".join(parts)


def _scores(facts: RunFacts, which: str) -> str:
    if facts.access is not None:
        return _UNKNOWN
    said = [_score(one, one.last if which == "last" else one.best) for one in facts.eval_sets]
    return "; ".join(said) or "nothing is scored yet"


def _score(eval_set: EvalSetFacts, score: Score | None) -> str:
    name = f"{eval_set.name} " if eval_set.name else ""
    if score is None:
        return f"{name}not scored yet"
    value = "has no ground truth" if score.value is None else f"{score.value:.3f}"
    kept = "" if score.is_on_disk else ", no longer on disk"
    when = f", {age_text(score.age_seconds)} ago" if score.age_seconds is not None else ""
    return f"{name}AP {value} at step {score.step:,}{when}{kept}"


def _error(facts: RunFacts) -> str:
    attempt = facts.attempt
    if attempt is not None and attempt.outcome == "failed":
        return f"attempt {attempt.number} {attempt.cause}: {one_line(attempt.reason, most=_LONG)}"
    for process in filter(None, (facts.trainer, *facts.evaluators)):
        trouble = process.trouble
        if trouble is not None:
            when = age_text(trouble.age_seconds)
            return (
                f"{process.name}, {when} ago, {trouble.kind}: {one_line(trouble.text, most=_LONG)}"
            )
    for one in facts.eval_sets:
        if one.failed_step is not None:
            return f"step {one.failed_step} of {one.name or 'eval'}: {one_line(one.failed_reason)}"
    return "none recorded" if facts.access is None else one_line(facts.access.text)


def _pods(facts: RunFacts) -> str:
    if facts.cluster_problem:
        return f"{_UNKNOWN}: {one_line(facts.cluster_problem)}"
    cluster = facts.cluster
    if cluster is None:
        return "the cluster was not asked (-n NAMESPACE does)"
    job = cluster.job
    parts = [f"Job {job.name} {job.phase}" if job else "no trainer Job"]
    for component in ("trainer", "evaluator"):
        pods = cluster.of(component)
        if pods:
            parts.append(_pod(pods[0]))
        elif component == "evaluator":
            replicas = cluster.evaluator_replicas
            parts.append("evaluator scaled to zero" if replicas == 0 else "no evaluator pod")
    return "; ".join(parts)


def _pod(pod: PodFacts) -> str:
    state = pod.waiting or pod.phase
    ready = ", ready" if pod.is_ready else ""
    restarts = f", {counted(pod.restarts, 'restart')}" if pod.restarts else ""
    last = f", last ended {pod.last_exit}" if pod.last_exit and pod.phase != "Succeeded" else ""
    code = f" ({pod.exit_code})" if last and pod.exit_code is not None else ""
    return f"{pod.component} {state}{ready}{restarts}{last}{code}"


def _disruptions(facts: RunFacts) -> str:
    if facts.access is not None:
        return _UNKNOWN
    endings = {"stopped": 0, "killed": 0, "failed": 0}
    for attempt in facts.attempts:
        kind = _how_it_ended(attempt, is_newest=attempt is facts.attempt)
        if kind is not None:
            endings[kind] += 1
    said = ", ".join(
        f"{kind} {counted(number, 'time')}" for kind, number in endings.items() if number
    )
    lately = sum(
        after.claimed_age_seconds is not None and after.claimed_age_seconds < _HOUR
        for before, after in itertools.pairwise(facts.attempts)
        if _how_it_ended(before, is_newest=False) is not None
    )
    newest = facts.attempt
    if newest is not None and newest.outcome in ("preempted", "failed"):
        lately += newest.ended_age_seconds is not None and newest.ended_age_seconds < _HOUR
    parts = [f"{said}, {lately} in the last hour" if said else "none"]
    if facts.cluster is not None and facts.cluster.job is not None:
        parts.append(f"{facts.cluster.job.num_failed} count against the Job's backoffLimit")
        reasons = sorted({pod.disruption for pod in facts.cluster.pods if pod.disruption})
        parts += [f"by {', '.join(reasons)}"] if reasons else []
    return "; ".join(parts)


def _how_it_ended(attempt: AttemptFacts, *, is_newest: bool) -> str | None:
    if attempt.outcome == "preempted":
        return "stopped"
    if attempt.outcome == "failed":
        return "failed"
    if attempt.outcome is None and not is_newest:
        return "killed"
    return None


def _store(facts: RunFacts) -> str:
    said = []
    for process in filter(None, (facts.trainer, facts.evaluator)):
        requests, p99 = process.number("store_requests"), process.number("store_p99_seconds")
        if requests is None:
            continue
        errors, p50 = process.number("store_errors") or 0, process.number("store_p50_seconds")
        times = f", p50 {1000 * p50:.0f} ms, p99 {1000 * p99:.0f} ms" if p50 and p99 else ""
        principal = process.facts.get("principal")
        who = f" as {principal}" if principal else ""
        share = 100 * errors / requests if requests else 0.0
        component = "trainer" if process.name == "trainer" else "evaluator"
        said.append(
            f"{component} {requests:.0f} requests in 5 min, {share:.1f} % failed{times}{who}"
        )
    if facts.access is None:
        said.append(f"this look took {facts.look_seconds:.1f} s")
    is_absent = facts.access.kind is Access.NO_RUN if facts.access else False
    return "; ".join(said) or ("nothing to ask yet" if is_absent else "out of reach from here")


def _completion(facts: RunFacts) -> str:
    pending = facts.checkpoints.num_pending
    owed = f"{counted(pending, 'evaluation')} owed" if pending else "every checkpoint is evaluated"
    if facts.access is not None:
        return _UNKNOWN
    if facts.outcome == "finished":
        return f"training has finished; {owed}"
    if facts.outcome == "failed":
        return f"training has failed and won't finish by itself; {owed}"
    trainer = facts.trainer
    if trainer is not None and facts.target_step is None:
        return f"trains until stopped; {owed}"
    eta = trainer.number("eta_seconds") if trainer and trainer.lives else None
    when = f"in {age_text(eta)}" if eta is not None else "at an unknown time"
    target = f"step {facts.target_step:,}" if facts.target_step else "the last step"
    return f"{target} {when}, and a final evaluation after it; {owed}"


def _from_its_end(change: str) -> str:
    """A changed field, whose last part and values say most."""
    line = " ".join(change.split())
    return line if len(line) <= _MAX_CHANGE else f"...{line[3 - _MAX_CHANGE :]}"


def _changes(facts: RunFacts) -> str:
    attempt = facts.attempt
    if attempt is None:
        return _UNKNOWN if facts.access is not None else "nothing has begun"
    before = facts.attempts[-2] if len(facts.attempts) > 1 else None
    changes = [_from_its_end(line) for line in attempt.config_diff]
    if before is not None and before.image != attempt.image:
        changes.append(f"image: {before.image} -> {attempt.image}")
    if before is not None and before.owner != attempt.owner:
        changes.append(f"owner: {before.owner} -> {attempt.owner}")
    when = f"attempt {attempt.number}, {age_text(attempt.claimed_age_seconds)} ago"
    if not changes:
        return f"none since the attempt before ({when})" if before else f"none ({when})"
    shown = "; ".join(changes[:_MAX_CHANGES])
    more = f"; and {len(changes) - _MAX_CHANGES} more" if len(changes) > _MAX_CHANGES else ""
    return f"{shown}{more} ({when})"
