"""What an evaluator with nothing to do asks of the store."""

from bench.store_polls import operations_per_hour


def test_an_hour_of_looking_every_10_seconds_costs_no_more_after_many_attempts():
    hour = operations_per_hour()

    assert hour == {"list": 2 * 360, "get": 360, "replace": 360}
    assert operations_per_hour(others=20) == hour
