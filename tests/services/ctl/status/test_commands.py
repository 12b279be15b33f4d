"""`tandem status` and `tandem explain`, through the real entry point."""

import os
import shutil
import subprocess
import sys
import time

import pytest

from services.ctl.status.lines import lines_about
from tandem.checkpoints.attempts import Outcome, end_attempt
from tandem.checkpoints.heartbeats import Heartbeat
from tandem.checkpoints.ledger import record_entry
from tandem.checkpoints.lines import read_line
from tandem.checkpoints.names import CheckpointId
from tests.checkpoints.actors import entry
from tests.services.ctl.store.example_run import SETS
from tests.status.experiments import HEALTHY, in_cluster


@pytest.fixture
def finished(folder, store):
    """The example, when it has finished and its damage is retired."""
    (folder / "checkpoints/ckpt-6000-1.damaged.json").unlink()
    (folder / "heartbeats/trainer.json").unlink()
    Heartbeat(store, "trainer", attempt=2).beat("finished", 8000, last_step=8000)
    for eval_set in SETS:
        for checkpoint in ((6000, 1), (7000, 2), (8000, 2)):
            record_entry(store, entry(CheckpointId(*checkpoint), metric=0.372, eval_set=eval_set))
    end_attempt(store, read_line(store).newest_attempt, outcome=Outcome.FINISHED, final_step=8000)
    return folder


LABELS = [
    "train", "ckpt", "eval", "lag", "last", "best", "error", "pods", "disruptions", "gcs",
    "completion", "changes",
]  # fmt: skip


def test_a_finished_run_is_healthy(tandem, finished):
    said = tandem("status", finished)

    assert (said.code, said.err) == (0, "")
    first, *others = said.out.splitlines()
    assert first.strip() == "HEALTHY  training has finished, and every checkpoint is evaluated"
    labels = [line.partition(":")[0] for line in others if ":" in line]
    assert labels == [*LABELS, "next", "runbook"]


def test_json_has_the_documented_keys(tandem, folder):
    said = tandem("status", folder, "--json")

    assert said.code == 1
    assert set(said.json) == {
        "schema", "name", "run", "health", "cause", "text", "findings", "next", "runbook", "lines",
        "facts",
    }  # fmt: skip
    assert (said.json["schema"], said.json["health"]) == (1, "degraded")
    assert list(said.json["lines"]) == LABELS
    codes = [finding["code"] for finding in said.json["findings"]]
    assert "checkpoint-damaged" in codes
    assert set(said.json["findings"][0]) == {
        "code", "health", "cause", "text", "next", "runbook",
    }  # fmt: skip
    assert said.json["facts"]["checkpoints"]["newest_step"] == 8000


def test_what_cannot_be_looked_at_is_unknown(tandem, tmp_path):
    said = tandem("status", tmp_path / "gone")

    assert said.code == 3
    assert said.out.startswith(" UNKNOWN (unknown) ")
    assert tandem("status").code == 3
    assert "which run?" in tandem("status").err
    assert tandem("status", "--all", "run").code == 3
    assert tandem("status", "gs://").code == 3


def test_it_is_quick_to_import_and_needs_neither_tensorflow_nor_google_nor_kubernetes(finished):
    program = (
        "import sys; sys.argv = ['tandem', 'status', sys.argv[1]]\n"
        "from services.ctl.__main__ import main\n"
        "try: main()\n"
        "except SystemExit as end: assert end.code == 0, end.code\n"
        "heavy = {'tensorflow', 'keras', 'numpy', 'google.cloud.storage', 'kubernetes'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, finished], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_watching_ends_with_the_last_verdict(finished):
    command = [sys.executable, "-m", "services.ctl", "status", finished, "--watch", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        time.sleep(8)  # it shows nothing before its end where nobody looks
        process.send_signal(2)
        out, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "HEALTHY" in out


def test_several_findings_are_all_said(tandem, folder):
    out = tandem("status", folder).out

    assert "also:" in out
    assert out.splitlines()[-2].startswith("next:")
    assert out.splitlines()[-1].startswith("runbook:     docs/runbook.md#tandem")


def test_names_from_a_run_folder_are_shown_escaped(tandem, folder, store):
    Heartbeat(store, "evaluator-\x1b[31mred").beat("waiting", last_error="\x1b]0;title\x07")
    out = tandem("status", folder).out

    assert "\x1b[31m" not in out
    assert "\x1b]" not in out


def test_explain_tells_the_story_in_order(tandem, folder):
    said = tandem("explain", folder, 7000, "--json")

    assert said.code == 0
    stories = {story["checkpoint"]: story for story in said.json["checkpoints"]}
    assert set(stories) == {"7000-1", "7000-2"}
    assert stories["7000-1"]["state"].startswith("void")
    events = [event["what"] for event in stories["7000-2"]["events"]]
    assert events[:2] == ["saved", "committed"]
    assert events.count("tried") == 2
    assert events.count("leased") == 1
    text = tandem("explain", folder, 3000).out
    assert "shipped as release 3" in text
    assert "AP 0.344" in text
    assert "checkpoint 6000-1: damaged, in quarantine" in tandem("explain", folder, 6000).out


def test_explain_knows_what_was_deleted(tandem, folder, store):
    for path in (folder / "checkpoints").glob("ckpt-1000-1.*"):
        path.unlink()
    out = tandem("explain", folder, 1000).out

    assert "deleted" in out
    assert "scored" in out


def test_explain_says_which_steps_are_near(tandem, folder):
    said = tandem("explain", folder, 6500)

    assert said.code == 2
    assert "near it are 5000, 6000, 7000, 8000" in said.err
    assert tandem("explain", folder, "-1").code == 2


def test_each_answer_fits_the_facts():
    said = dict(lines_about(in_cluster(HEALTHY)))

    assert said["train"] == (
        "step 12,000 of 60,000, training, 3.00 steps/s (usual 3.03), attempt 1 on fox-1, "
        "heard 3 s ago"
    )
    assert said["ckpt"] == (
        "step 12,000 committed 100 s ago, one is due every 6 min, a kill now would cost 0 steps "
        "(0 s)"
    )
    assert said["eval"] == "main: running image 40 of 100, step 11,000 for 0 s, heard 4 s ago"
    assert said["lag"] == (
        "1 checkpoint(s) wait, the oldest for 100 s (30 min allowed), an evaluation takes 60 s, "
        "a checkpoint comes every 6 min: keeps up"
    )
    assert said["last"] == "val AP 0.410 at step 11,000"
    assert said["best"] == "val AP 0.430 at step 10,000"
    assert said["pods"] == (
        "Job fox-trainer-1 running; trainer Running, ready; evaluator Running, ready"
    )
    assert said["completion"].startswith("step 60,000 at an unknown time")


def test_a_copy_of_a_run_is_looked_at_like_the_run(tandem, finished, tmp_path):
    copy = shutil.copytree(finished, tmp_path / "copy", ignore=shutil.ignore_patterns("*.lock"))
    os.utime(copy / "run.json", (0, 0))

    assert tandem("status", copy).code == 0
