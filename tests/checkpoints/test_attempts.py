import pytest

from tandem.checkpoints.attempts import Outcome, end_attempt, stop_if_superseded
from tandem.checkpoints.lines import read_line
from tandem.errors import AttemptSupersededError, ObjectExistsError, RunConflictError
from tests.checkpoints.actors import claim


@pytest.mark.parametrize("outcome", list(Outcome))
def test_how_an_attempt_ended_is_the_outcome_of_the_run(store, clock, outcome):
    attempt = claim(store, clock)
    assert read_line(store).outcome is None
    end_attempt(
        store, attempt, outcome=outcome, reason="why", final_step=3, surroundings=clock.surroundings
    )
    line = read_line(store)
    assert line.outcome is outcome
    assert (line.end.reason, line.end.final_step) == ("why", 3)


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
