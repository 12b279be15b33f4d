"""Which save gets the time that is left before the process has to be gone."""

import pytest

from services.trainer.giving_way import GivenUpError, Progress, is_worth_ending


@pytest.mark.parametrize(
    ("part_gone", "seconds_gone", "seconds_left", "is_ended"),
    [
        (0.0, 0.0, 25.0, False),
        (0.1, 0.5, 25.0, False),
        (0.7, 3.5, 25.0, False),  # the last one takes 5 s, and 20 are left after it
        (0.75, 3.75, 25.0, True),
        (1.0, 5.0, 25.0, True),
        (0.5, 12.0, 25.0, True),  # the last one would take 24 s
        (0.5, 10.0, 25.0, False),
        (0.1, 6.0, 25.0, True),  # neither gets done in time; this one is nearer to it
        (0.4, 4.0, 0.0, True),
    ],
)
def test_the_last_one_gets_it_where_it_can_be_done(part_gone, seconds_gone, seconds_left, is_ended):
    found = is_worth_ending(part_gone, seconds_gone=seconds_gone, seconds_left=seconds_left)
    assert found is is_ended


def test_it_is_asked_before_each_piece_what_has_gone():
    seen = []
    progress = Progress(100, lambda part: seen.append(part) or part < 0.5)
    progress(30)
    progress(30)
    with pytest.raises(GivenUpError):
        progress(30)
    assert seen == [0.0, 0.3, 0.6]
