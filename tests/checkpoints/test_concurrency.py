"""A trainer and two evaluators at once, in threads of one process, on each backend."""

import threading

from tandem.checkpoints.bests import best_entry
from tandem.checkpoints.fetching import fetch_checkpoint
from tandem.checkpoints.ledger import EntryOutcome, read_entries, recorded_checkpoints
from tandem.checkpoints.lines import LineReader, read_line
from tandem.checkpoints.policies import RetentionPolicy
from tandem.checkpoints.tries import record_try
from tests.checkpoints.actors import METRIC, VAL, Evaluator, Trainer

STEPS = 25


def _evaluate(evaluator, line, folder):
    """Evaluates the oldest checkpoint that waits, if any."""
    recorded = recorded_checkpoints(evaluator.store, VAL)
    for checkpoint in line.readable:
        lease = None if checkpoint in recorded else evaluator.acquire(checkpoint)
        if lease is None:
            continue
        # Under a lease nothing may be missing, so whatever this raises fails the test.
        fetched = fetch_checkpoint(evaluator.store, checkpoint, folder, reader=None)
        record_try(evaluator.store, checkpoint, VAL, recorder=evaluator.name)
        content = fetched.prefix.with_name(f"ckpt-{checkpoint}.index").read_bytes()
        assert content == f"{checkpoint}.index".encode() * 10
        evaluator.score(checkpoint, (checkpoint.step * 7 % 11) / 10)
        evaluator.leases.release(lease)
        return


def _run_evaluator(store, clock, name, folder, problems):
    evaluator, reader = Evaluator(store, clock, name), LineReader(store)
    try:
        while True:
            line = reader.read()
            waiting = set(line.checkpoints) - recorded_checkpoints(store, VAL)
            if line.final is not None and not waiting:
                return
            _evaluate(evaluator, line, folder / name)
    except BaseException as error:  # noqa: BLE001 - handed to the main thread
        problems.append(error)


def test_every_checkpoint_ends_with_one_entry_and_no_reader_misses_an_object(
    store, clock, tmp_path
):
    policy = RetentionPolicy(max_to_keep=2, max_unevaluated=3)
    trainer = Trainer(store, clock, tmp_path / "scratch", policy=policy)
    problems = []
    evaluators = [
        threading.Thread(target=_run_evaluator, args=(store, clock, name, tmp_path, problems))
        for name in ("e1", "e2")
    ]
    for thread in evaluators:
        thread.start()
    for step in range(1, STEPS + 1):
        trainer.save(step)
        trainer.retire()
    trainer.finish(STEPS)
    for thread in evaluators:
        thread.join(timeout=60)
    assert problems == []
    entries = read_entries(store, VAL)
    assert [entry.checkpoint.step for entry in entries] == list(range(1, STEPS + 1))
    line = read_line(store)
    scored = [e for e in entries if e.outcome is EntryOutcome.SCORED]
    best = best_entry(scored, metric=METRIC, among=[e.checkpoint for e in scored])
    assert best.checkpoint in line.checkpoints
    assert store.list("leases/") == []
