"""What the demo shows, as text."""

import io

import pytest
from rich.console import Console

from services.ctl.demo.facts import newest_lines
from services.ctl.demo.run import choose_run
from services.ctl.demo.view import Facts, Score, best_ap, clock, line, screen
from services.ctl.tables import COLUMNS, metrics_table
from tandem.evaluation.coco_metrics import TAGS


def text_of(renderable, width=110):
    console = Console(file=io.StringIO(), width=width)
    console.print(renderable)
    return console.file.getvalue()


@pytest.fixture
def facts():
    return Facts(
        elapsed_seconds=65.0,
        trainer_phase="training",
        step=420,
        last_step=1200,
        loss=0.8312,
        steps_per_second=5.12,
        eta_seconds=152.0,
        evaluator_phase="running",
        evaluating=400,
        checkpoints=[200, 400],
        scores=[Score(200, {TAGS["ap"]: 0.2, TAGS["ap50"]: 0.55, TAGS["ap_small"]: None})],
        log=["12:00:01Z trainer   INFO hello"],
    )


def test_a_checkpoint_without_a_score_is_queued(facts):
    assert facts.queue == [400]


def test_the_plain_line_has_all_that_changes(facts):
    assert line(facts) == (
        "1:05 trainer training step 420/1200 loss 0.831 5.1 steps/s eta 2:32 | evaluator running "
        "scored 1 queued 1 best AP@0.5 0.550"
    )


@pytest.mark.parametrize("width", [80, 110, 200])
def test_the_screen_fits_its_terminal(facts, width):
    shown = text_of(screen(facts), width)
    assert max(len(row) for row in shown.splitlines()) <= width
    for words in ("step 420 of 1200", "scoring step 400", "queue: 400", "0.550", "INFO hello"):
        assert words in shown


def test_before_the_first_heartbeat_everything_is_unknown():
    empty = Facts(0.0, None, 0, 100, None, None, None, None, None, [], [], [])
    assert "starting step 0/100 loss - - steps/s eta -" in line(empty)
    assert "after the first checkpoint" in text_of(screen(empty))


def test_the_best_is_the_highest_and_ignores_what_has_no_ground_truth():
    assert best_ap([]) is None
    assert best_ap([Score(1, {TAGS["ap50"]: None}), Score(2, {TAGS["ap50"]: 0.3})]) == 0.3


def test_the_table_has_the_twelve_numbers_in_pycocotools_order():
    assert list(COLUMNS.values()) == list(TAGS.values())
    metrics = {tag: index / 100 for index, tag in enumerate(TAGS.values(), 1)}
    shown = text_of(metrics_table([(7, metrics)]), 200)
    assert shown.split()[-13:] == ["7", *(f"{index / 100:.3f}" for index in range(1, 13))]


def test_the_table_fits_eighty_columns():
    shown = text_of(metrics_table([(100000, dict.fromkeys(TAGS.values(), 0.5))]), 80)
    assert shown.count("0.500") == 12


def test_seconds_are_shown_as_minutes():
    assert [clock(0), clock(61.9), clock(600), clock(None)] == ["0:00", "1:01", "10:00", "-"]


def test_the_newest_lines_of_all_logs_come_in_order_of_time(tmp_path):
    trainer, evaluator = tmp_path / "trainer.log", tmp_path / "evaluator.log"
    trainer.write_text("2026-01-01 10:00:01Z INFO a\n2026-01-01 10:00:03Z INFO c\n")
    evaluator.write_text("2026-01-01 10:00:02Z INFO b\n")
    logs = {"trainer": trainer, "evaluator": evaluator, "absent": tmp_path / "absent.log"}
    assert newest_lines(logs, most=2) == [
        "10:00:02Z evaluator INFO b",
        "10:00:03Z trainer   INFO c",
    ]


def test_a_new_demo_takes_the_first_folder_without_a_finished_run(tmp_path):
    assert choose_run(tmp_path) == tmp_path / "demo"
