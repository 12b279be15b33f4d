"""Processes that end before their time leave word of why in the run folder."""

import shutil

import pytest

from services.exits import Exit
from tandem.checkpoints.heartbeats import read_heartbeat
from tandem.checkpoints.lines import read_line
from tandem.checkpoints.opening import open_store
from tandem.checkpoints.surroundings import seconds_since_1970


@pytest.mark.slow
def test_a_trainer_that_meets_a_bad_record_says_so_in_its_end_and_its_heartbeat(
    small_run, shapes, tmp_path
):
    records = tmp_path / "train.record"
    shutil.copy(shapes.train, records)
    trainer = small_run.trainer(
        "--override",
        f'train_input_reader {{ tf_record_input_reader {{ input_path: "{records}" }} }}',
        num_steps=100000,
    )
    trainer.wait_for_log("step 3/100000")
    damaged = bytearray(records.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    replacement = records.with_suffix(".new")
    replacement.write_bytes(damaged)
    replacement.rename(records)
    assert trainer.wait() == Exit.TRAINING_FAILED, trainer.log
    store = open_store(str(small_run.run))
    end = read_line(store).end
    assert end.cause == "RecordError"
    beat = read_heartbeat(store, "trainer")
    assert (beat.phase, beat.facts["last_error_kind"]) == ("failed", "RecordError")
    assert beat.facts["last_error"].startswith(end.reason[:100])
    assert seconds_since_1970(beat.facts["last_error_at"]) > 0
    assert beat.step >= 3

    again = small_run.trainer(num_steps=2)
    assert again.wait() == 0, again.log
    second = read_line(store).attempts[-1]
    assert (second.resumed_from, second.lost_steps) == (None, beat.step)


@pytest.mark.slow
def test_an_evaluator_that_can_not_go_on_says_so_in_its_heartbeat(small_run):
    assert small_run.trainer(num_steps=1).wait() == 0
    claim = small_run.run / "attempts" / "0001.json"
    claim.write_text(claim.read_text().replace("num_steps: 1", "num_steps: 9"))
    evaluator = small_run.evaluator(num_steps=1)
    assert evaluator.wait() == Exit.UNEXPECTED, evaluator.log
    beat = read_heartbeat(open_store(str(small_run.run)), "evaluator-main")
    assert (beat.phase, beat.facts["last_error_kind"]) == ("failed", "StoreError")
    assert "attempts/0001.json is damaged" in beat.facts["last_error"]
    assert "store_p50_seconds" in beat.facts
