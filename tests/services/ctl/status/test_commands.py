"""`tandem status` and `tandem explain`, through the real entry point."""

import io
import os
import shutil
import subprocess
import sys

import pytest
from rich.console import Console
from rich.text import Text

from services.ctl.status import command
from services.ctl.status.fitting import fitted
from services.ctl.status.lines import lines_about
from services.ctl.status.reports import screen
from tandem.checkpoints.attempts import Outcome, end_attempt
from tandem.checkpoints.heartbeats import Heartbeat
from tandem.checkpoints.ledger import record_entry
from tandem.checkpoints.lines import read_line
from tandem.checkpoints.names import CheckpointId
from tandem.status.verdicts import verdict_on
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


def test_a_command_that_is_wrong_never_says_broken(tandem, tmp_path):
    assert tandem("status", "one", "another").code == 3
    assert tandem("status", tmp_path, "--watch", "0").code == 3
    assert tandem("store").code == 2
    said = tandem("status", tmp_path, "--watch", "--json")
    assert (said.code, said.json["health"]) == (3, "unknown")
    assert "expected no --watch" in said.json["error"]
    assert tandem("status", "--json").json["error"].startswith("which run?")


def test_a_bucket_without_credentials_is_refused_in_words(tandem, monkeypatch, tmp_path):
    monkeypatch.delenv("STORAGE_EMULATOR_HOST", raising=False)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "gone.json"))
    said = tandem("status", "gs://bucket-of-nobody/run", "--json")

    assert said.code == 3
    assert said.json["findings"][0]["code"] == "store-refused"
    assert "gcloud auth application-default login" in said.json["text"]


def test_a_look_has_less_than_the_two_seconds_that_are_promised():
    longest = max(command._LOOK_SECONDS, command._ANSWERED_BY_SECONDS)
    after_a_slow_cluster = command._LEAST_SECONDS - command._AFTER_CLUSTER_SECONDS
    assert longest + after_a_slow_cluster < 2.0


def test_a_fault_of_ours_is_unknown_and_leaves_its_trace(tandem, finished, monkeypatch):
    monkeypatch.setattr("services.ctl.status.command.look_at", lambda *_: 1 / 0)
    said = tandem("status", finished, "--json")

    assert said.code == 3
    assert said.json == {
        "schema": 1, "health": "unknown", "error": "ZeroDivisionError: division by zero",
    }  # fmt: skip
    assert "Traceback" in said.err


def test_an_evaluations_time_is_that_of_the_whole(tandem, finished, store):
    made = entry(CheckpointId(9000, 2), metric=0.4, eval_set=SETS[0])
    durations = {"model": 9.0, "metrics": 2.0, "total": 12.0}
    record_entry(store, made.model_copy(update={"durations_seconds": durations}))

    facts = tandem("status", finished, "--json").json["facts"]
    (seconds,) = [
        s["seconds_per_evaluation"] for s in facts["eval_sets"] if s["name"] == SETS[0].name
    ]
    assert seconds == 12.0


def test_what_is_taller_than_the_terminal_keeps_its_beginning_and_its_end():
    console = Console(width=40, height=10, force_terminal=True, file=io.StringIO())
    lines = [f"line {number}" for number in range(30)]
    with console.capture() as captured:
        console.print(fitted(Text("\n".join(lines)), console))
    shown = captured.get().splitlines()
    assert shown == [
        *lines[:5], "... 22 lines more; a taller window shows", *lines[-3:],
    ]  # fmt: skip
    with console.capture() as captured:
        console.print(fitted(Text("\n".join(lines[:9])), console))
    assert captured.get().splitlines() == lines[:9]


def test_a_line_that_is_too_long_goes_on_below_its_beginning():
    lines = [line.plain for line in screen(HEALTHY, verdict_on(HEALTHY), width=50)]
    (train,) = [line for line in lines if line.startswith("train:")]
    others = train.splitlines()[1:]
    assert len(others) >= 2
    assert all(line.startswith(" " * 13) and line[13] != " " for line in others)
    assert max(map(len, train.splitlines())) <= 50
    assert lines[-2] == "next:        tandem status gs://bucket/fox --watch"


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
    watching = [sys.executable, "-m", "services.ctl", "status", finished, "--watch", "1"]
    with subprocess.Popen(watching, stdout=subprocess.PIPE, text=True) as process:
        looks = []
        while len(looks) < 2:  # one after the other, where no terminal shows the newest
            line = process.stdout.readline()
            looks += ["HEALTHY"] if "HEALTHY" in line else []
        process.send_signal(2)
        process.communicate(timeout=30)
    assert process.returncode == 0


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


def test_explain_does_not_wait_for_a_store_that_hangs(tandem, folder, monkeypatch):
    monkeypatch.setattr("services.ctl.status.explaining._PATIENCE_SECONDS", 0.2)
    for path in (folder / "attempts").glob("*.json"):
        path.unlink()
        os.mkfifo(path)
    said = tandem("explain", folder, 7000)

    assert said.code == 2
    assert "did not answer within" in said.err


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
        "1 checkpoint waits for 100 s (30 min allowed), an evaluation takes 60 s, "
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
