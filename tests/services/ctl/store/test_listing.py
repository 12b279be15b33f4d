"""What `tandem store ls` prints."""

import io
import re
from datetime import timedelta

import pytest
from rich.console import Console

from services.ctl.store.facts import read_run_facts
from services.ctl.store.listing import listing
from services.ctl.store.runs import open_run
from tandem.checkpoints.attempts import Outcome, end_attempt
from tandem.checkpoints.ledger import LedgerEntry
from tandem.checkpoints.lines import read_line
from tandem.checkpoints.local import LocalStore
from tandem.checkpoints.names import EvalSet
from tandem.checkpoints.records import decode, encode
from tandem.checkpoints.runs import ensure_run
from tandem.checkpoints.surroundings import Surroundings
from tests.services.ctl.store.example_run import NOW, SETS, THIRD, make_example_run


def _shown(folder, *, width=80):
    opened = open_run(str(folder))
    console = Console(file=io.StringIO(), width=width)
    facts = read_run_facts(opened.store, opened.run)
    console.print(listing(facts, now=NOW), markup=False)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def _row(lines, checkpoint):
    (row,) = [line for line in lines if line.startswith(f"{checkpoint:>10}")]
    return row.split()


def test_the_state_of_the_newest_attempt_stands_on_top(folder):
    lines = _shown(folder, width=200)
    assert lines[0] == f"run      nonce-1 in {folder}"
    assert lines[1] == "trainer  attempt 2 by trainer-0/1, begun 88 min ago, resumed from 6000-1"
    assert lines[2] == "state    training at step 8640, last heard 3 s ago"
    assert "the newest 7, the best of each eval set, the best 2 by mAP of night," in lines[3]


@pytest.mark.parametrize(
    ("checkpoint", "row"),
    [
        ("9000-2", "9000-2 - - - - no commit"),
        ("8000-2", "8000-2 45 min 380 B pending pending newest"),
        ("7000-2", "7000-2 67 min 380 B running 2/3 pending leased"),
        ("7000-1", "7000-1 88 min 380 B - - void"),
        ("6000-1", "6000-1 110 min 380 B pending pending DAMAGED"),
        ("5000-1", "5000-1 2 h 380 B 0.362 0.262"),
        ("4000-1", "4000-1 3 h 380 B 0.371 0.271 best, leased"),
        ("3000-1", "3000-1 3 h 380 B 0.344 0.244 pinned"),
        ("2000-1", "2000-1 3 h 380 B 0.231 failed"),
    ],
)
def test_each_checkpoint_has_a_line(folder, checkpoint, row):
    assert _row(_shown(folder), checkpoint) == row.split()


def test_the_newest_checkpoint_comes_first(folder):
    first = [line.split()[0] for line in _shown(folder) if line.startswith("    ") and line.strip()]
    assert [row for row in first if re.fullmatch(r"[0-9]+-[0-9]+", row)] == [
        "9000-2", "8000-2", "7000-2", "7000-1", "6000-1", "5000-1", "4000-1", "3000-1", "2000-1",
        "1000-1",
    ]  # fmt: skip


def test_what_a_table_can_not_hold_stands_below_it(folder):
    text = " ".join(" ".join(_shown(folder)).split())
    assert "7000-2 leased for validation by evaluator-0/17, renewed 12 s ago" in text
    assert "4000-1 leased for export by evaluator-0/17" in text
    assert "3000-1 pinned by ann@desk: shipped as release 3" in text
    assert "6000-1 damaged: checkpoints/ckpt-6000-1.index: 120 bytes, crc32c 99887766" in text
    assert "2000-1 failed on night: ResourceExhaustedError: out of memory" in text


@pytest.mark.parametrize("width", [80, 120])
def test_three_eval_sets_fit_a_terminal(tmp_path, width):
    make_example_run(LocalStore(tmp_path / "run"), tmp_path / "scratch", sets=(*SETS, THIRD))
    lines = _shown(tmp_path / "run", width=width)
    assert max(map(len, lines)) <= width
    (header,) = [line for line in lines if "checkpoint " in line and "age" in line]
    assert header.split() == ["checkpoint", "age", "size", "validation", "night", "constructio…"]
    for step in range(1, 10):
        assert sum(line.lstrip().startswith(f"{step}000-") for line in lines) >= 1


def test_a_narrow_terminal_loses_other_columns_before_any_mark(tmp_path):
    make_example_run(LocalStore(tmp_path / "run"), tmp_path / "scratch", sets=(*SETS, THIRD))
    lines = _shown(tmp_path / "run", width=40)
    assert max(map(len, lines)) <= 40
    assert _row(lines, "9000-2")[-2:] == ["no", "commit"]
    assert _row(lines, "8000-2")[-1] == "newest"
    assert _row(lines, "6000-1")[-1] == "DAMAGED"
    assert _row(lines, "4000-1")[1:] == ["0.371", "best,", "leased"]
    assert _row(lines, "3000-1")[-1] == "pinned"
    text = " ".join(" ".join(lines).split())
    assert "no room for age, size, night, construction sites in the rain" in text


def test_the_name_of_a_set_is_no_markup(tmp_path):
    named = (EvalSet("[red]:smile:", "d"), SETS[1])
    make_example_run(LocalStore(tmp_path / "run"), tmp_path / "scratch", sets=named)
    assert any("[red]:smile:" in line for line in _shown(tmp_path / "run", width=120))


def test_an_ended_attempt_says_how_and_why(store, folder):
    attempt = read_line(store).newest_attempt
    ended = Surroundings(utc_now=lambda: NOW - timedelta(minutes=10))
    end_attempt(
        store, attempt, outcome=Outcome.FAILED, reason="NaN loss", final_step=8000,
        surroundings=ended,
    )  # fmt: skip
    assert "state    failed at step 8000 10 min ago: NaN loss" in _shown(folder)


def test_the_last_checkpoint_of_a_finished_run_is_its_final_one(store, folder):
    end_attempt(store, read_line(store).newest_attempt, outcome=Outcome.FINISHED, final_step=8000)
    assert _row(_shown(folder), "8000-2")[-1] == "final"


def test_a_run_without_a_trainer_or_checkpoints_says_so(tmp_path):
    ensure_run(LocalStore(tmp_path / "run"))
    lines = _shown(tmp_path / "run")
    assert "trainer  none has begun yet" in lines
    assert lines[-1] == "no checkpoint yet"


def test_evaluations_of_other_data_are_counted_not_mixed_in(store, folder):
    data = store.get("evaluations/night/1000-1-77aa00bb22dd.json").data
    entry = decode(data, LedgerEntry, name="it").model_copy(update={"set_digest": "other"})
    store.create("evaluations/night/1000-1-other.json", encode(entry))
    assert "also     1 evaluations of other sets or data: see the ledger" in _shown(folder)


def test_a_damaged_commit_is_shown_as_such(store, folder):
    (folder / "checkpoints/ckpt-1000-1.commit.json").write_bytes(b"{}")
    lines = _shown(folder)
    assert _row(lines, "1000-1")[-1] == "DAMAGED"
    assert any("1000-1  damaged: checkpoints/ckpt-1000-1.commit.json is" in line for line in lines)
