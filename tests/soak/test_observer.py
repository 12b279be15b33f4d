"""That the soak's observer sees what it is there to see."""

import json
from pathlib import Path

import pytest
from google_crc32c import value as crc32c

from tests.soak.observer import Observer
from tests.soak.views import FolderView

DATA = {".index": b"index", ".data-00000-of-00001": b"weights"}


class Run:
    """A run folder, written by hand, and its observer."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.told = []
        self.observer = Observer(
            FolderView(folder), eval_sets=("day", "night"), tell=self.told.append
        )

    def put(self, name, content):
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_bytes(data)

    def remove(self, name):
        (self.folder / name).unlink()

    def attempt(self, number, resumed_from=None):
        self.put(f"attempts/{number:04d}.json", {"resumed_from": resumed_from})

    def commit(self, checkpoint):
        files = []
        for suffix, data in DATA.items():
            self.put(f"checkpoints/ckpt-{checkpoint}{suffix}", data)
            files.append({"suffix": suffix, "size": len(data), "crc32c": crc32c(data)})
        self.put(f"checkpoints/ckpt-{checkpoint}.commit.json", {"files": files})

    def retire(self, checkpoint):
        for suffix in (*DATA, ".commit.json"):
            self.remove(f"checkpoints/ckpt-{checkpoint}{suffix}")

    def entry(self, checkpoint, eval_set, *, ap, digest="d1"):
        outcome = "skipped" if ap is None else "scored"
        metrics = {} if ap is None else {"DetectionBoxes_Precision/mAP": ap}
        record = {"outcome": outcome, "metrics": metrics}
        self.put(f"evaluations/{eval_set}/{checkpoint}-{digest}.json", record)

    def state_file(self, *checkpoints):
        paths = [f'all_model_checkpoint_paths: "ckpt-{c}"' for c in checkpoints]
        self.put("checkpoints/checkpoint", "\n".join(paths).encode())

    def check(self):
        """What is told now."""
        self.told.clear()
        self.observer.check()
        return list(self.told)


@pytest.fixture
def run(tmp_path):
    run = Run(tmp_path)
    run.attempt(1)
    run.commit("6-1")
    run.commit("12-1")
    run.state_file("12-1", "6-1")
    for eval_set in ("day", "night"):
        run.entry("6-1", eval_set, ap=0.5)
    assert run.check() == []
    return run


def test_a_sound_run_gives_no_reason_to_speak(run):
    run.commit("18-1")
    run.attempt(2, resumed_from="18-1")
    run.commit("24-2")
    for eval_set in ("day", "night"):
        run.entry("12-1", eval_set, ap=None)
    run.state_file("24-2", "18-1", "6-1")
    run.retire("12-1")
    assert run.check() == []
    progress = run.observer.look()
    assert str(progress.newest) == "24-2"
    assert progress.num_scored == 2


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda run: run.put("checkpoints/ckpt-12-1.index", b"indey"), "12-1: .index has"),
        (lambda run: run.remove("checkpoints/ckpt-12-1.index"), "12-1: .index is missing"),
        (lambda run: run.retire("12-1"), "12-1 has gone without an entry in day"),
        (lambda run: run.retire("12-1"), "the state file names checkpoint 12-1"),
        (lambda run: run.retire("12-1"), "the line ends at 6-1, before 12-1"),
        (lambda run: run.retire("6-1"), "6-1, the best of night, is gone"),
        (
            lambda run: run.put("checkpoints/ckpt-6-1.retire.json", {}),
            "6-1, the best of day, is gone or about to go",
        ),
        (lambda run: run.remove("evaluations/day/6-1-d1.json"), "6-1-d1.json has vanished"),
        (lambda run: run.entry("6-1", "day", ap=0.6), "evaluations/day/6-1-d1.json has changed"),
        (lambda run: run.entry("6-1", "day", ap=0.6, digest="d2"), "6-1 has 2 entries in day"),
        (lambda run: run.attempt(1, resumed_from="3-0"), "attempts/0001.json has changed"),
        (lambda run: run.put("checkpoints/ckpt-6-1.damaged.json", {}), "6-1 is in quarantine"),
    ],
)
def test_each_broken_promise_is_told(run, change, word):
    change(run)
    assert any(word in told for told in run.check())


def test_a_late_commit_of_an_older_attempt_may_turn_out_void(run):
    run.attempt(2, resumed_from="12-1")
    run.commit("18-1")
    run.state_file("18-1", "12-1")
    assert run.check() == []
    run.commit("14-2")
    run.state_file("14-2", "12-1")
    assert run.check() == []


def test_a_checkpoint_with_an_intent_may_lack_files(run):
    for eval_set in ("day", "night"):
        run.entry("12-1", eval_set, ap=0.1)
    run.commit("18-1")
    run.put("checkpoints/ckpt-12-1.retire.json", {})
    run.state_file("18-1", "6-1")
    run.remove("checkpoints/ckpt-12-1.index")
    assert run.check() == []
