import pytest

from tandem.checkpoints.attempts import (
    Attempt,
    AttemptEnd,
    Outcome,
    end_attempt,
    stop_if_superseded,
)
from tandem.checkpoints.lines import read_line
from tandem.checkpoints.records import decode
from tandem.errors import AttemptSupersededError, ObjectExistsError, RunConflictError
from tests.checkpoints.actors import claim


@pytest.mark.parametrize("outcome", list(Outcome))
def test_how_an_attempt_ended_is_the_outcome_of_the_run(store, clock, outcome):
    attempt = claim(store, clock)
    assert read_line(store).outcome is None
    end_attempt(
        store, attempt, outcome=outcome, reason="why", cause="RecordError", final_step=3,
        surroundings=clock.surroundings,
    )  # fmt: skip
    line = read_line(store)
    assert line.outcome is outcome
    assert (line.end.reason, line.end.cause, line.end.final_step) == ("why", "RecordError", 3)


# As they were written before they told of a cause and of lost steps.
OLD_END = b"""{
 "checksum": "crc32c:b63da555",
 "ended_at": "2026-01-31T12:00:00Z",
 "final_step": 3,
 "kind": "attempt-end",
 "nonce": "nonce-1",
 "number": 1,
 "outcome": "failed",
 "reason": "why",
 "schema": 1
}
"""
OLD_ATTEMPT = b"""{
 "checksum": "crc32c:4a30491d",
 "claimed_at": "2026-01-31T12:00:00Z",
 "config_diff": [],
 "config_digest": "c0",
 "config_text": "num_steps: 5",
 "eval_sets": [],
 "holder": "host:1",
 "image": "tandem",
 "kind": "attempt",
 "nonce": "nonce-0",
 "number": 1,
 "owner": "job-1",
 "resumed_from": null,
 "retention": {
  "keep_best": [],
  "keep_every_n_steps": null,
  "max_to_keep": 7,
  "max_unevaluated": 20
 },
 "schema": 1
}
"""


def test_records_of_before_there_were_causes_and_lost_steps_are_read():
    end = decode(OLD_END, AttemptEnd, name="attempts/0001.end.json")
    assert (end.outcome, end.cause) == (Outcome.FAILED, "")
    attempt = decode(OLD_ATTEMPT, Attempt, name="attempts/0001.json")
    assert (attempt.config_digest, attempt.lost_steps) == ("c0", 0)


def test_an_attempt_ends_once(store, clock):
    attempt = claim(store, clock)
    end_attempt(store, attempt, outcome=Outcome.FAILED, surroundings=clock.surroundings)
    with pytest.raises(ObjectExistsError):
        end_attempt(store, attempt, outcome=Outcome.FINISHED, surroundings=clock.surroundings)


def test_a_superseded_attempt_has_no_say_in_the_outcome(store, clock):
    old = claim(store, clock)
    claim(store, clock)
    with pytest.raises(AttemptSupersededError, match=r"attempt 1 .* attempt 2"):
        stop_if_superseded(store, old)
    with pytest.raises(AttemptSupersededError):
        end_attempt(store, old, outcome=Outcome.FINISHED, surroundings=clock.surroundings)
    assert read_line(store).outcome is None


def test_an_attempt_whose_run_was_deleted_stops_and_says_so(store, clock):
    attempt = claim(store, clock)
    for name in store.list(""):
        store.delete(name, generation=store.generation(name))
    with pytest.raises(RunConflictError, match=r"deleted .* attempts/0001.json is gone"):
        end_attempt(store, attempt, outcome=Outcome.FINISHED, surroundings=clock.surroundings)
    assert store.list("") == []


def test_while_a_new_attempt_trains_on_after_a_finished_one_the_run_is_running(store, clock):
    first = claim(store, clock)
    end_attempt(store, first, outcome=Outcome.FINISHED, surroundings=clock.surroundings)
    claim(store, clock)
    line = read_line(store)
    assert (line.outcome, line.final, line.head) == (None, None, 1)
