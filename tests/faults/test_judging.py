"""A harness that judges faults must not be pleased too easily."""

import itertools
import json
from dataclasses import replace

import pytest

from tests.faults.asking import answer_of
from tests.faults.judging import Answer, Expected, Row, Tally

EXPECTED = Expected("storage", ("store-refused",))
RIGHT = Answer("unknown", "storage", "store-refused", 0.4, 3, "no access")
HEALTHY = Answer("healthy", "", "", 0.3, 0, "all is well")
ROW = Row(1, "no access", EXPECTED, answers=(RIGHT, RIGHT), before=(HEALTHY,))


def tally(*rows, not_run=None):
    return Tally(rows, not_run or {})


def all_24(*first):
    return tally(*first, *(replace(ROW, number=n) for n in range(len(first) + 1, 25)))


def test_24_right_answers_are_counted_as_such():
    assert all_24().last_line == "right: 24 of 24, false healthy: 0"
    assert all_24().exit_code == 0


@pytest.mark.parametrize(
    "answer",
    [
        RIGHT._replace(cause="ours"),
        RIGHT._replace(code="store-slow"),
        RIGHT._replace(health="", cause="", code=""),
        RIGHT._replace(exit_code=1),
        RIGHT._replace(exit_code=2),
    ],
)
def test_another_class_finding_or_exit_code_is_not_right(answer):
    row = replace(ROW, answers=(RIGHT, answer))
    assert not row.is_right
    assert not row.is_false_healthy
    assert row.worst == answer
    assert "WRONG" in "\n".join(tally(row).lines())


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize(
    "answer", [HEALTHY, RIGHT._replace(exit_code=0), HEALTHY._replace(exit_code=3)]
)
def test_one_answer_of_healthy_is_a_false_one_and_fails_all(answer, place):
    answers = [RIGHT, RIGHT]
    answers[place] = answer
    row = replace(ROW, answers=tuple(answers))
    judged = all_24(row)
    assert row.is_false_healthy
    assert judged.last_line == "right: 23 of 24, false healthy: 1"
    assert judged.exit_code == 1


def test_an_answer_that_takes_two_seconds_fails_all_although_it_is_right():
    row = replace(ROW, answers=(RIGHT, RIGHT._replace(seconds=2.0)))
    judged = all_24(row)
    assert judged.num_right == 24
    assert judged.exit_code == 1
    assert "slow: 2.0 s" in "\n".join(judged.lines())


def test_two_of_24_may_be_wrong_and_a_third_may_not():
    wrong = replace(ROW, answers=(RIGHT._replace(cause="data"),))
    assert all_24(wrong, wrong).exit_code == 0
    assert all_24(wrong, wrong, wrong).exit_code == 1


def test_of_fewer_none_may_be_wrong_and_all_24_are_not_claimed():
    wrong = replace(ROW, answers=(RIGHT._replace(cause="data"),))
    some = tally(ROW, ROW, not_run={7: "no node"})
    assert some.last_line == "right: 2 of 2, false healthy: 0, not run: 7"
    assert some.exit_code == 0
    assert tally(ROW, wrong).exit_code == 1
    assert tally().exit_code == 1


def test_a_fault_that_was_not_shown_or_not_asked_about_is_not_right():
    assert not replace(ROW, trouble="the trainer did not start").is_right
    assert not replace(ROW, answers=()).is_right


@pytest.mark.parametrize(
    "before",
    [
        Answer("broken", "unknown", "trainer-silent", 0.3, 2),
        Answer("unknown", "unknown", "no-trainer", 0.3, 3),
        Answer("degraded", "storage", "store-refused", 0.3, 1),
    ],
)
def test_who_says_broken_or_names_the_fault_before_it_is_there_is_not_right_after(before):
    assert not replace(ROW, before=(before,)).is_right


def test_a_run_may_be_degraded_before_for_another_reason_which_is_printed():
    before = Answer("degraded", "ours", "evaluation-behind", 0.3, 1, "3 checkpoints wait")
    row = replace(ROW, before=(before,))
    assert row.is_right
    assert "before: degraded ours evaluation-behind: 3 checkpoints wait" in "\n".join(
        tally(row).lines()
    )


def test_a_status_that_always_says_the_same_gets_no_fault_right():
    causes, codes = ("ours", "storage"), ("store-refused", "images-differ")
    for cause, code in itertools.product(causes, codes):
        always = Answer("broken", cause, code, 0.1, 2)
        row = replace(ROW, answers=(always,), before=(always,))
        assert not row.is_right


def test_what_the_command_printed_becomes_an_answer():
    findings = [{"code": "store-refused"}, {"code": "clock-wrong"}]
    document = {"health": "unknown", "cause": "storage", "text": "no", "findings": findings}
    found = answer_of(json.dumps(document), "", exit_code=3, seconds=0.5)
    assert found == Answer("unknown", "storage", "store-refused", 0.5, 3, "no")
    well = document | {"health": "healthy", "cause": None, "findings": []}
    assert answer_of(json.dumps(well), "", exit_code=0, seconds=0.5).is_healthy


@pytest.mark.parametrize("output", ["", "Traceback", "[]", "{}"])
def test_output_that_is_no_answer_fits_nothing(output):
    found = answer_of(output, "tandem: no access", exit_code=3, seconds=0.5)
    assert not found.fits(EXPECTED)
    assert found.text == "tandem: no access"
