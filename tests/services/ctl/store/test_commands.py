"""The `tandem store` commands, through the real entry point."""

import subprocess
import sys

import pytest

from tandem.checkpoints.attempts import Outcome, end_attempt
from tandem.checkpoints.leases import Leases
from tandem.checkpoints.lines import read_line
from tandem.checkpoints.names import CheckpointId, EvalSet
from tandem.checkpoints.opening import open_store
from tandem.checkpoints.runs import ensure_run
from tests.rig.gcs import BUCKET, unique
from tests.services.ctl.store.example_run import make_example_run

COMMANDS = ["ls", "verify", "gc", "ledger"]


def _snapshot(folder):
    return {
        str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file() and "lock" not in p.name
    }


def _finish(store):
    end_attempt(store, read_line(store).newest_attempt, outcome=Outcome.FINISHED, final_step=8000)


def test_ls_is_one_json_object_with_stable_keys(tandem, folder):
    said = tandem("store", "ls", folder, "--json")
    assert (said.code, said.err) == (0, "")
    run = said.json
    assert set(run) == {
        "run", "location", "attempt", "retention", "eval_sets", "newest", "final", "checkpoints",
    }  # fmt: skip
    assert (run["newest"], run["final"]) == ("8000-2", None)
    assert run["attempt"]["number"] == 2
    assert (run["attempt"]["phase"], run["attempt"]["outcome"]) == ("training", None)
    by_id = {c["checkpoint"]: c for c in run["checkpoints"]}
    assert list(by_id)[:2] == ["9000-2", "8000-2"]
    assert set(by_id["7000-2"]) == {
        "checkpoint", "step", "attempt", "committed", "committed_at", "size", "newest", "final",
        "void", "retiring", "damaged", "damage", "pinned", "pin", "leases", "evaluations",
    }  # fmt: skip
    assert by_id["7000-1"]["void"]
    assert not by_id["9000-2"]["committed"]
    assert by_id["3000-1"]["pin"]["reason"] == "shipped as release 3"
    assert by_id["4000-1"]["leases"][0]["purpose"] == "export"
    assert by_id["7000-2"]["evaluations"][0] == {
        "eval_set": "validation", "state": "running", "value": None, "tries": 2, "reasons": [],
        "best": False,
    }  # fmt: skip


def test_a_lease_for_the_unnamed_set_is_one_of_its_evaluation(tandem, tmp_path):
    store = open_store(str(tmp_path / "run"))
    make_example_run(store, tmp_path / "scratch", sets=(EvalSet("", "d1"), EvalSet("b", "d2")))
    leases = Leases(store, holder="e")
    assert leases.acquire(CheckpointId(8000, 2), "eval", eval_set=EvalSet("", "d1"))
    run = tandem("store", "ls", tmp_path / "run", "--json").json
    states = [e["state"] for e in run["checkpoints"][1]["evaluations"]]
    assert states == ["running", "pending"]


def test_verify_prints_a_line_per_finding_and_exits_1(tandem, folder):
    (folder / "checkpoints/ckpt-1000-1.index").write_bytes(b"x")
    said = tandem("store", "verify", folder)
    assert said.code == 1
    (line,) = [n for n in said.out.splitlines() if n.startswith("checkpoints/ckpt-1000-1.index")]
    assert "expected" in line
    assert "found 1 bytes, crc32c " in line
    assert "bring it back from a copy" in line
    found = tandem("store", "verify", folder, "--json")
    assert found.code == 1
    assert not found.json["sound"]
    assert set(found.json["findings"][0]) == {"object", "expected", "found", "advice"}


def test_verify_exits_0_when_all_is_sound_and_writes_nothing(tandem, tmp_path):
    store = open_store(str(tmp_path / "run"))
    ensure_run(store)
    before = _snapshot(tmp_path)
    said = tandem("store", "verify", tmp_path / "run")
    assert said.code == 0
    assert ": sound (0 checkpoints, 1 objects, " in said.out
    assert _snapshot(tmp_path) == before


def test_gc_says_first_and_does_then(tandem, folder, store):
    _finish(store)
    for name in store.list("leases/"):
        store.delete(name, generation=store.stat(name).generation)
    before = _snapshot(folder)
    foreseen = tandem("store", "gc", folder, "--dry-run")
    assert _snapshot(folder) == before
    assert foreseen.code == 0
    assert "would retire 7000-1: void: not on the line of attempts\n" in foreseen.out
    assert "would remove data without a commit of 9000-2\n" in foreseen.out
    as_json = tandem("store", "gc", folder, "--dry-run", "--json").json
    done = tandem("store", "gc", folder, "--json").json
    assert done == as_json | {"dry_run": False}
    assert [r["checkpoint"] for r in done["retired"]] == ["6000-1", "7000-1"]
    assert done["swept"] == [{"what": "data", "checkpoint": "9000-2", "lease": None}]
    assert tandem("store", "gc", folder).out == "nothing to clean up\n"


def test_gc_tells_on_standard_error_what_it_waits_for(tandem, folder, store):
    _finish(store)
    said = tandem("store", "gc", folder, "--lease-seconds", "1", "--json")
    assert said.err == "waiting up to 1 s to see whether the leases are still in use\n"
    assert [s["what"] for s in said.json["swept"]].count("lease") == 2


@pytest.mark.parametrize("seconds", ["0", "-1", "0.9", "86401", "1e99", "soon", "inf", "nan"])
def test_gc_refuses_a_wait_that_is_none(tandem, folder, seconds):
    said = tandem("store", "gc", folder, "--lease-seconds", seconds)
    assert said.code == 2
    assert f"'{seconds}' is no number of seconds from 1 to 86400 (a day)" in said.err


def test_the_ledger_is_printed_per_set_also_by_its_short_name(tandem, folder):
    said = tandem("store", "ledger", folder)
    assert said.code == 0
    assert "eval set night, digest 77aa00bb22dd" in said.out
    assert "2000-1 failed: ResourceExhaustedError: out of memory\n" in said.out
    assert tandem("ledger", folder) == said


def test_the_ledger_as_json_is_what_was_recorded(tandem, folder):
    entries = tandem("store", "ledger", folder, "--json").json["entries"]
    assert len(entries) == 10
    assert entries[0]["checkpoint"] == "1000-1"
    assert (entries[0]["step"], entries[0]["attempt"]) == (1000, 1)
    assert entries[1]["outcome"] == "failed"
    assert "nonce" not in entries[0]


def test_a_run_without_evaluations_says_so(tandem, tmp_path):
    ensure_run(open_store(str(tmp_path / "run")))
    said = tandem("store", "ledger", tmp_path / "run")
    assert (said.code, said.out) == (0, "no checkpoint has been evaluated yet\n")


def test_a_checkpoint_is_pinned_by_its_step_or_its_whole_name(tandem, folder):
    said = tandem("store", "pin", folder, "1000", "--reason", "for the paper")
    assert (said.code, said.out) == (0, "1000-1 is pinned\n")
    assert tandem("store", "pin", folder, "1000-1").out == "1000-1 was pinned already\n"
    by_id = {
        c["checkpoint"]: c for c in tandem("store", "ls", folder, "--json").json["checkpoints"]
    }
    assert by_id["1000-1"]["pin"]["reason"] == "for the paper"
    said = tandem("store", "unpin", folder, "1000", "--json")
    assert said.json == {"checkpoint": "1000-1", "pinned": False, "changed": True}


def test_of_two_checkpoints_of_a_step_the_one_on_the_line_is_meant(tandem, folder):
    assert tandem("store", "pin", folder, "7000").out == "7000-2 is pinned\n"
    assert tandem("store", "pin", folder, "7000-1").out == "7000-1 is pinned\n"
    said = tandem("store", "unpin", folder, "7000")
    assert said.code == 2
    assert said.err == "tandem: 7000 may be any of 7000-1, 7000-2: give STEP-ATTEMPT\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["pin", "5400"], "there is no checkpoint 5400; the nearest are 4000-1, 5000-1, 6000-1"),
        (
            ["pin", "5000-2"],
            "there is no checkpoint 5000-2; the nearest are 4000-1, 5000-1, 6000-1",
        ),
        *(
            (
                [command, wanted],
                f"{shown!r} is neither a step nor STEP-ATTEMPT, as 1000-2 (of at most 19 digits "
                "each)",
            )
            for command in ("pin", "unpin")
            for wanted, shown in {
                "newest": "newest",
                "9" * 5000: "9" * 40 + "...",
                "1-" + "9" * 5000: "1-" + "9" * 38 + "...",
                "٣": "٣",
                "²": "²",
            }.items()
        ),
        (["unpin", "4000"], "checkpoint 4000 is not pinned; pinned are 3000-1"),
    ],
)
def test_a_checkpoint_that_is_not_there_is_answered_with_those_that_are(
    tandem, folder, arguments, message
):
    command, checkpoint = arguments
    said = tandem("store", command, folder, checkpoint, "--json")
    assert (said.code, said.out, said.err) == (2, "", f"tandem: {message}\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_no_run_is_refused_in_one_line_that_says_what_is_there(tandem, tmp_path, command):
    run = tmp_path / "runs" / "one"
    ensure_run(open_store(str(run)))
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    (tmp_path / "model").mkdir()
    (tmp_path / "model/model.ckpt-5.index").write_text("x")
    (run / "train").mkdir()
    for folder, message in {
        tmp_path / "nowhere": "is no run folder: it does not exist",
        tmp_path / "empty": "is no run folder: it is empty",
        tmp_path / "file": "is a file; expected a folder",
        tmp_path / "runs": f"it has no run.json; did you mean {run}?",
        run / "train": "is no run folder: it is empty",
        tmp_path / "model": "it holds checkpoints of another program, and no run.json",
    }.items():
        said = tandem("store", command, folder, "--json")
        assert (said.code, said.out) == (2, ""), folder
        assert message in said.err
        assert said.err.count("\n") == 1


HOSTILE = "\x1b]0;x\x07 \udcff\n\u202e[bold]"


def test_what_a_terminal_would_obey_is_printed_escaped(tandem, folder, store):
    assert tandem("store", "pin", folder, "1000", "--reason", HOSTILE).code == 0
    (folder / "evaluations/\x1b[31m").mkdir()
    (folder / "evaluations/\x1b[31m/1000-1-d.json").write_bytes(b"x")
    (folder / "pins/odd\udcff\x07").write_bytes(b"x")
    shown, verified = tandem("store", "ls", folder), tandem("store", "verify", folder)
    assert r"pinned by" in shown.out
    assert r"\x1b]0;x\x07 \udcff\n\u202e[bold]" in "".join(shown.out.split("\n        "))
    assert r"pins/odd\udcff\x07: expected an object of this run" in verified.out
    for said in (shown, verified, tandem("store", "pin", folder / "\x1b[31m", "1")):
        assert not {c for c in said.out + said.err if not c.isprintable()} - {"\n"}


def test_json_is_ascii_whatever_is_in_a_run(tandem, folder):
    tandem("store", "pin", folder, "1000", "--reason", HOSTILE)
    said = tandem("store", "ls", folder, "--json")
    assert said.out.isascii()
    pins = {c["checkpoint"]: c["pin"] for c in said.json["checkpoints"]}
    assert pins["1000-1"]["reason"] == HOSTILE


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", None, "flipped", "folder"])
def test_a_damaged_identity_is_a_finding_and_elsewhere_an_error_that_points_to_it(
    tandem, tmp_path, content
):
    folder = tmp_path / "run"
    store = open_store(str(folder))
    make_example_run(store, tmp_path / "scratch")
    sound = store.get("run.json").data
    store.delete("run.json", generation=store.generation("run.json"))
    if content == "folder":
        (folder / "run.json").mkdir()
    elif content is not None:
        flipped = bytes([*sound[:20], sound[20] ^ 1, *sound[21:]])
        (folder / "run.json").write_bytes(flipped if content == "flipped" else content)
    found = tandem("store", "verify", folder, "--json")
    assert found.code == 1
    assert "run.json" in [finding["object"] for finding in found.json["findings"]]
    for command in (["ls"], ["gc"], ["ledger"], ["pin", "1000"], ["unpin", "3000"]):
        said = tandem("store", command[0], folder, *command[1:])
        assert (said.code, said.out, said.err.count("\n")) == (2, "", 1)
        if content is not None:
            assert f"`tandem store verify {folder}` reads everything" in said.err


@pytest.mark.parametrize("command", ["ls", "gc"])
def test_a_damaged_attempt_is_named_with_where_to_learn_more(tandem, folder, command):
    (folder / "attempts/0001.json").write_bytes(b"x")
    said = tandem("store", command, folder)
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("tandem: attempts/0001.json is damaged: not JSON")
    assert f"`tandem store verify {folder}` reads everything" in said.err


def test_a_run_of_a_newer_version_is_refused(tandem, tmp_path, monkeypatch):
    with monkeypatch.context() as later:
        later.setattr("tandem.checkpoints.records.SCHEMA", 2)
        ensure_run(open_store(str(tmp_path / "run")))
    said = tandem("store", "ls", tmp_path / "run")
    assert said.code == 2
    assert "run.json was written by a newer version of Tandem (schema 2" in said.err


def test_ls_of_a_local_run_loads_neither_tensorflow_nor_googles_client(folder):
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "services.ctl", "store", "ls", str(folder)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert " services.ctl.store.listing\n" in done.stderr
    for module in ("tensorflow", "keras", "numpy", "google.cloud", "requests"):
        assert f" {module}\n" not in done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_the_commands_work_on_a_bucket(command, gcs_server, tmp_path, monkeypatch, tandem):
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", gcs_server.url)
    location = f"gs://{BUCKET}/{unique('cli')}/run"
    store = open_store(location)
    make_example_run(store, tmp_path / "scratch")
    _finish(store)
    local = tmp_path / "run"
    make_example_run(open_store(str(local)), tmp_path / "scratch")
    _finish(open_store(str(local)))
    options = ["--lease-seconds", "1"] if command == "gc" else []
    there, here = (tandem("store", command, run, "--json", *options) for run in (location, local))
    assert there.code == here.code
    assert _without_times(there.json) == _without_times(here.json)


def _without_times(value):
    if isinstance(value, dict):
        return {
            key: _without_times(inner)
            for key, inner in value.items()
            if not key.endswith(("_at", "_since", "location", "bytes"))
        }
    return [_without_times(inner) for inner in value] if isinstance(value, list) else value
