from tandem.kube.budgets import Budget, Memory, Said


def test_a_budget_gives_a_burst_and_then_one_each_time_it_has_refilled():
    now = [0.0]
    budget = Budget(monotonic=lambda: now[0], burst=3, refill_seconds=10.0)
    assert [budget.take() for _ in range(4)] == [True, True, True, False]
    now[0] = 9.9
    assert not budget.take()
    now[0] = 10.0
    assert [budget.take() for _ in range(2)] == [True, False]


def test_a_budget_saves_up_no_more_than_its_burst():
    now = [0.0]
    budget = Budget(monotonic=lambda: now[0], burst=2, refill_seconds=1.0)
    now[0] = 1000.0
    assert [budget.take() for _ in range(3)] == [True, True, False]


def test_the_same_words_are_found_again_until_too_many_others_came():
    memory = Memory()
    memory.note("Resumed", "from 5", Said("a", 1))
    assert memory.find("Resumed", "from 5") == Said("a", 1)
    assert memory.find("Resumed", "from 6") is None
    for number in range(100):
        memory.note("Other", str(number), Said(str(number), 1))
    assert memory.find("Resumed", "from 5") is None
